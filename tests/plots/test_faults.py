from pathlib import Path

import pytest

from plots import faults, marked

STABILITY = Path(__file__).parents[2] / "docs" / "stability.md"
PAGE = """# Title
<!-- faults: begin -->
| fault | 2.9.1 |
| --- | --: |
| half | 1 |
<!-- faults: end -->
```python
def near(number):
    return torch.tensor([number, 2.0])
```
### half
```python
gradient, exact = near(1.0), near(1.5)
```
### none
```python
rank, exact = near(1.5), near(1.5)
```
### not a number
```python
gradient, exact = near(1.5) / 0 * 0, near(1.5)
```
## Another chapter
### of which no example runs
```python
raise ValueError
```
"""


def test_a_release_fills_its_column_and_leaves_the_others(fill):
    done, page = fill(faults.main, PAGE)
    assert done.exit_code == 0, done.output
    table = page.partition("begin -->\n")[2].partition("\n<!-- faults: end")[0]
    head, _, *lines = table.splitlines()
    assert head == f"| fault | 2.9.1 | {faults.version()} |"
    assert lines == ["| half | 1 | **2e-01** |", "| none | – | 0 |", "| not a number | – | **∞** |"]
    assert fill(faults.main, page)[1] == page


def test_columns_are_in_the_order_of_releases():
    text = "| fault | 2.9.1 | 2.13.0 |\n| --- | --: | --: |\n| half | 1 | 2 |"
    found = faults.with_column(text, "2.11.0", {"half": "3", "other": "4"})
    assert found.splitlines()[0] == "| fault | 2.9.1 | 2.11.0 | 2.13.0 |"
    assert found.splitlines()[2:] == ["| half | 1 | 3 | 2 |", "| other | – | 4 | – |"]


def test_hard_cases_of_another_release_are_refused(fill, runs, write_runs, tmp_path):
    write_runs(runs, tmp_path / "hard")
    done, page = fill(faults.main, PAGE, "--hard", tmp_path / "hard")
    assert (done.exit_code, page) == (2, PAGE)
    assert "was judged with torch" in " ".join(done.stderr.split())


def test_the_page_of_faults_says_what_its_examples_do():
    head, _, *lines = [
        line.strip("| ").split(" | ") for line in marked.part(STABILITY, "faults").splitlines()
    ]
    if faults.version() not in head:
        pytest.skip("the page says nothing of this release")
    said = {line[0]: line[head.index(faults.version())] for line in lines}
    found = faults.examples(STABILITY.read_text(encoding="utf-8"))
    assert {fault: "**" in entry for fault, entry in found.items()} == {
        fault: "**" in said[fault] for fault in found
    }
