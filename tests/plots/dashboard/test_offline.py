import pytest

from plots.dashboard import offline


def test_a_script_that_no_package_holds_is_named(tmp_path):
    script = '    <script src="https://example.org/news-2.1.min.js"></script>\n'
    (tmp_path / "index.html").write_text(script)
    with pytest.raises(LookupError, match=r"no package is known that holds news\.js"):
        offline.localize(tmp_path)
