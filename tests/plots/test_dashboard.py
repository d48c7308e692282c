import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import strategies
from plots.dashboard import offline

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "selection" / "data" / "asv"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,1000",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost",
)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """What `asv publish` makes of the test results, in a repository that has their commit."""
    repository = tmp_path_factory.mktemp("repository")

    def git(*arguments):
        command = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments]
        done = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message=measured")
    shutil.copy(ROOT / "asv.conf.json", repository)
    (repository / "plots").symlink_to(ROOT / "plots")
    results = Path(shutil.copytree(RESULTS, repository / ".asv" / "results"))
    (file,) = results.glob("*/*-*.json")
    commit = git("rev-parse", "HEAD")
    recorded = re.search(r'"commit_hash": ?"(\w+)"', file.read_text())[1]
    file.write_text(file.read_text().replace(recorded, commit))
    file.rename(file.with_name(commit[:8] + file.name[8:]))
    publish = [sys.executable, "-m", "asv", "publish"]
    done = subprocess.run(publish, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "remains asv's own" not in done.stdout
    return repository / ".asv" / "html"


@pytest.fixture(scope="module")
def address(published):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Handler, directory=str(published))
    with http.server.ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (BROWSER and DRIVER):
        pytest.skip("chromium and chromedriver are not installed")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (*QUIET, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def see(browser, address):
    """Opens a page of the dashboard anew, and waits until the elements asked for are visible."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.wait import WebDriverWait

    wait = WebDriverWait(browser, 20, ignored_exceptions=[StaleElementReferenceException])

    def visible(css):
        return [e for e in browser.find_elements("css selector", css) if e.is_displayed()]

    def open_page(fragment, css):
        browser.get("about:blank")
        browser.get(address + fragment)
        return wait.until(lambda _: visible(css))

    yield open_page
    assert browser.get_log("browser") == []


CASES = "#defaults-display tbody tr"


def test_the_page_loads_nothing_from_elsewhere(published):
    page = (published / "index.html").read_text()
    files = re.findall(r'<script[^>]* src="([^"]*)"', page)
    files += re.findall(r'<link[^>]* href="([^"]*)"', page)
    assert len(files) > 15
    assert [file for file in files if not (published / file).is_file()] == []
    assert [file for file in published.rglob("*.css") if "url(http" in file.read_text()] == []


def test_a_script_that_no_package_holds_is_named(tmp_path):
    script = '    <script src="https://example.org/news-2.1.min.js"></script>\n'
    (tmp_path / "index.html").write_text(script)
    with pytest.raises(LookupError, match=r"no package is known that holds news\.js"):
        offline.localize(tmp_path)


def test_the_dashboard_opens_with_the_defaults(see):
    assert len(see("", CASES)) > 3
    (run,) = see("", "#defaults-provenance li")
    assert "reference-machine" in run.text


def test_figures_are_drawn(see, browser):
    figures = see("#defaults", ".defaults-figures img")
    assert "error over gallery" in [figure.get_attribute("alt") for figure in figures]
    widths = (
        "return [...document.querySelectorAll('.defaults-figures img')].map(i => i.naturalWidth)"
    )
    assert all(width > 0 for width in browser.execute_script(widths))


def test_the_filter_leaves_what_was_asked_for(see, browser):
    from selenium.webdriver.support.select import Select

    every = len(see("#defaults", CASES))
    Select(browser.find_element("name", "operation")).select_by_visible_text("pinv")
    rows = [row for row in browser.find_elements("css selector", CASES) if row.is_displayed()]
    assert 0 < len(rows) < every
    assert {row.text.split()[0] for row in rows} == {"pinv"}
    assert "#defaults?operation=pinv" in browser.current_url
    assert len(see("#defaults?operation=pinv", CASES)) == len(rows)


def test_an_entry_leads_to_its_graph(see, browser):
    from selenium.webdriver.support.wait import WebDriverWait

    links = see("#defaults", f"{CASES} a[href^='#pinv.Single.time_backward']")
    browser.execute_script("arguments[0].click()", links[0])
    labels = WebDriverWait(browser, 20).until(
        lambda _: browser.find_elements("css selector", "#main-graph .flot-x-axis .flot-tick-label")
    )
    names = [label.text for label in labels]
    assert names[0] == "native"
    assert set(names) <= set(strategies.available())
    assert not browser.find_element("id", "defaults-display").is_displayed()
    assert has_ink(browser)


def test_a_graph_is_first_seen_by_size_on_a_logarithmic_axis(see, browser):
    see("#pinv.Single.time_backward", "#main-graph .flot-x-axis .flot-tick-label")
    assert "x-axis=shape&y-axis-scale=log" in browser.current_url
    assert has_ink(browser)
    see("#pinv.Conditioning.track_gradient_error", "#main-graph .flot-base")
    assert "x-axis=log10_cond" in browser.current_url


@pytest.mark.parametrize(
    ("fragment", "css"),
    [
        ("#/", "#summarygrid-display .benchmark-plot canvas"),
        ("#summarylist", "#summarylist-body tbody tr"),
        ("#regressions", "#regressions-body"),
    ],
)
def test_the_pages_of_asv_work(see, fragment, css):
    assert see(fragment, css)


def test_the_list_can_be_sorted(see, browser):
    see("#summarylist", "#summarylist-body tbody tr")

    def first():
        return browser.find_element("css selector", "#summarylist-body tbody tr").text

    ascending = first()
    browser.find_element("css selector", "#summarylist-body thead th").click()
    assert first() != ascending


def has_ink(browser):
    """Whether coloured bars or lines are on the graph, beside its frame and grid."""
    return browser.execute_script("""
        const canvas = document.querySelector('#main-graph .flot-base');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let coloured = 0;
        for (let i = 0; i < data.length; i += 4) {
            const [r, g, b, alpha] = data.slice(i, i + 4);
            coloured += alpha > 60 && Math.max(r, g, b) - Math.min(r, g, b) > 40;
        }
        return coloured > 200;
    """)
