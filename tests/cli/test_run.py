"""`backward-strategies run`, of programs that are not edited."""

import strategies

PROGRAM = """
import sys, threading, torch
from torch.linalg import inv

def outlast():
    threading.main_thread().join()
    print("later", inv is torch.linalg.inv)

print(sys.argv[1:], inv.__module__)
inv(torch.eye(2), out=torch.empty(2, 2))
threading.Thread(target=outlast).start()
raise ValueError("mine")
"""


def test_a_program_runs_with_functions_that_are_replaced_and_ends_as_by_python(python, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    arguments = path, "--lr", "0.1", "-v"
    ours, of_python = python("-m", "strategies", "run", "-v", *arguments), python(*arguments)
    # In a thread that outlasts the program, too.
    replaced = "['--lr', '0.1', '-v'] strategies.integration.replacement", "later True"
    assert ours.stdout.splitlines() == list(replaced)
    said, *traceback = ours.stderr.splitlines()
    to_torch = f"torch.linalg.inv goes to PyTorch: it is called with out= ({path}:10)"
    assert said == f"backward-strategies: {to_torch}"
    assert traceback == of_python.stderr.splitlines()
    assert ours.returncode == of_python.returncode


def test_a_missing_file_is_one_line(main, fails, tmp_path):
    fails(["run", tmp_path / "none.py"], "there is no file", "none.py", by=main)
    assert not strategies.is_replaced()


def test_a_program_is_not_a_module_and_code(main, fails):
    fails(["run", "-m", "-c", "pass"], "-m", "-c", by=main)
