from strategies import explain, use
from strategies.explanation import explain_key


def test_it_says_what_auto_is_and_why(invoke):
    done = invoke("explain", "pinv", "64x16", "float32")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    first = explain_key(("pinv", 64, 16, 1, 0, "float32", "cpu")).tried[0]
    assert lines[0] == f'pinv of 64x16, float32, cpu: "auto" is {first}'
    assert "by the shipped policy" in done.stdout
    assert "stability ratios in hard cases (limit 100):" in done.stdout
    assert "native: unstable" in done.stdout
    assert "measured on epyc" in done.stdout


def test_a_case_that_is_none_is_refused(invoke, fails):
    fails(invoke("explain", "pinv", "big"), "'pinv big' is no case")


def test_a_strategy_that_is_used_answers_for_itself():
    import torch

    with use("qr_pinv"):
        found = explain("lu", torch.ones(2, 3, 3))
    assert (found.tried, found.source) == (("qr_pinv",), "strategies.use('qr_pinv')")
    assert found.key == ("lu", 3, 3, 1, 2, "float32", "cpu")
    assert "stability" not in str(found)
