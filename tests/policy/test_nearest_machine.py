import msgspec
import pytest
from by_hand import part_using, policy_cell, policy_of, ranking_of

from strategies.policy import nearest_machine as module
from strategies.policy.nearest_machine import GPU, PROCESSOR, TORCH, distance, nearest
from strategies.policy.schema import Policy
from strategies.policy.validators import Validators

HERE = Validators("abacus", "AVX2", "2.13.0+cpu", "mkl", "0.1.0", gpu="a card")
LIKE_HERE = {
    "name": "like here",
    "cpu": "abacus",
    "instruction_set": "AVX2",
    "torch": "2.13.1",
    "threads": 4,
    "gpu": "a card, another",
}


@pytest.mark.parametrize(
    ("differing", "expected"),
    [
        ({}, 0),
        ({"threads": 16}, 2),
        ({"threads": 1}, 2),
        ({"instruction_set": "AVX512"}, module.INSTRUCTION_SET),
        ({"cpu": "lathe"}, PROCESSOR),
        ({"torch": "2.9.0"}, TORCH),
        ({"torch": "3.13.0"}, TORCH),
        ({"cpu": "lathe", "torch": "2.9.0", "threads": 2}, PROCESSOR + TORCH + 1),
        ({"gpu": "none of these"}, 0),
        ({"instruction_set": "", "cpu": "", "torch": "", "threads": 0}, 0),
    ],
)
def test_on_a_cpu_threads_count_most(differing, expected):
    assert distance(LIKE_HERE | differing, HERE, "cpu", 4) == expected


def test_on_a_gpu_its_model_and_torch_count_alone():
    assert distance(LIKE_HERE | {"threads": 1, "cpu": "lathe"}, HERE, "cuda", 4) == 0
    assert distance(LIKE_HERE | {"gpu": "a car"}, HERE, "cuda", 4) == GPU
    assert distance(LIKE_HERE | {"torch": "2.9.0"}, HERE, "cuda", 4) == TORCH


def part(use, device="cpu", **differing):
    return part_using(use, device=device, machine=LIKE_HERE | {"name": f"of {use}"} | differing)


def policy(*others):
    known = policy_of(inv=[policy_cell(m, fused=1.0, native=3.0) for m in (8, 64)])
    return msgspec.structs.replace(known, provenance=(LIKE_HERE | {"threads": 2},), others=others)


def said(found, device="cpu", threads=1):
    answering, far, name = nearest(found, HERE, device, threads)
    return ranking_of(answering, "inv", 8, 8, device=device)[:1], far, name.partition(",")[0]


def test_the_nearest_machine_answers():
    known = policy(part("qr_pinv", threads=1), part("batch_last", threads=8))
    assert said(known, threads=1) == (("qr_pinv",), 0, "of qr_pinv")
    assert said(known, threads=2) == (("fused",), 0, "like here")
    assert said(known, threads=32) == (("batch_last",), 2, "of batch_last")


def test_at_equal_distance_the_first_machine_does():
    known = policy(part("qr_pinv", threads=2), part("batch_last", threads=1))
    assert nearest(known, HERE, "cpu", 2)[0] is known
    assert said(policy(part("qr_pinv"), part("batch_last")), threads=4)[2] == "of qr_pinv"


def test_a_device_that_the_first_machine_has_not_is_answered_by_one_that_has():
    known = policy(part("qr_pinv", "cuda", gpu="an old card"))
    assert said(known, "cuda") == (("qr_pinv",), GPU, "of qr_pinv")
    assert said(known, "cpu", 2)[2] == "like here"


def test_what_answers_knows_one_machine_and_cells_that_it_lacks_are_those_of_the_first():
    found, *_ = nearest(policy(part("qr_pinv")), HERE, "cpu", 4)
    assert found.others == ()
    assert found.provenance[0]["name"] == "of qr_pinv"
    assert ranking_of(found, "inv", 64, 64)[0] == "fused"


def test_a_policy_of_no_known_machine_answers_itself():
    known = Policy(operations={})
    assert nearest(known, HERE, "cpu", 1)[0] is known
