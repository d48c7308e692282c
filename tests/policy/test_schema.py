import pytest
from by_hand import policy_cell as cell
from by_hand import policy_of, ranking_of

from strategies.errors import UnusableFileError
from strategies.files.documents import json_text
from strategies.policy.schema import Default, Policy, position, ranking

CELLS = (
    cell(4, 4, batch=1000, native=1, qr_pinv=4),
    cell(64, 64, native=1, qr_pinv=2),
    cell(64, 64, rank=3, svd_truncated_pinv=1),
    cell(1024, 1024, native=8, qr_pinv=1),
)
DEFAULT = Default("triangular_solve", ("qr_pinv",), 2.0, 1.5, 3, 0)
POLICY = policy_of(pinv=CELLS, full_rank=DEFAULT)


def test_a_measured_case_is_answered_by_its_cell():
    known = [cell(8, 8, qr_pinv=1, native=9), cell(64, 64, use="native", native=1.04, qr_pinv=1.0)]
    assert ranking(known, position(64, 64)) == ("native", "qr_pinv")


@pytest.mark.parametrize(
    ("n", "asked", "best"),
    [
        # Between cells, the mean by nearness decides.
        (70, {}, "native"),
        (100, {}, "native"),
        (700, {}, "qr_pinv"),
        # Kinds of rank do not mix, and empty matrices have a place.
        (64, {"deficient": True}, "svd_truncated_pinv"),
        (0, {}, "native"),
        # A dtype that was not measured borrows, and a kind of device gets the default.
        (1024, {"dtype": "complex64"}, "qr_pinv"),
        (1024, {"device": "cpu:0"}, "qr_pinv"),
        (1024, {"device": "cuda:0"}, "triangular_solve"),
    ],
)
def test_what_was_not_measured_is_answered_by_what_was(n, asked, best):
    assert ranking_of(POLICY, "pinv", n, n, **asked)[0] == best


def test_a_strategy_that_is_good_all_around_beats_the_winner_of_the_nearest_cell():
    known = [
        cell(16, 16, qr_pinv=1, batch_last=1.01, native=9),
        *(cell(2**k, 2**k, qr_pinv=5, batch_last=1, native=9) for k in (5, 2, 1)),
    ]
    assert ranking(known, position(16, 16))[0] == "qr_pinv"
    assert ranking(known, position(20, 20))[0] == "batch_last"


def test_what_is_ineligible_nearby_comes_last():
    near = cell(8, 8, explicit_inverse=1, qr_pinv=5)
    far = cell(64, 64, qr_pinv=1)
    assert ranking([near, far], position(9, 9)) == ("qr_pinv", "explicit_inverse")
    only = cell(8, 8, explicit_inverse=1)
    assert ranking([only, far], position(9, 9)) == ("explicit_inverse",)


def test_an_answer_is_of_one_kind_and_none_of_what_was_never_measured():
    assert ranking_of(POLICY, "pinv", 64, 64, deficient=True) == ("svd_truncated_pinv",)
    assert ranking_of(POLICY, "pinv", 9, 9, device="cuda:0") == ("triangular_solve", "qr_pinv")
    assert ranking_of(POLICY, "det", 8, 8) == ()


def test_a_file_with_an_unknown_dtype_is_named(tmp_path):
    path = tmp_path / "policy.json"
    path.write_text(json_text(POLICY).replace("float64", "float99"))
    with pytest.raises(UnusableFileError, match=r"policy\.json: is damaged: no dtype is 'float99'"):
        Policy.read(path)
