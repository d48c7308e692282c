"""What `asv publish` makes of a few results, seen by a browser that cannot reach the internet."""

import functools
import http.server
import itertools
import json
import re
import shutil
import sys
import threading
from pathlib import Path

import pytest

import strategies
from benchmarks.suites import suites_of
from plots import style
from strategies import registry
from strategies.cli.common import DEFAULT_RESULTS
from tests import process

ROOT = Path(__file__).parents[3]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
QUIET = (
    *("headless", "no-sandbox", "disable-gpu", "disable-quic", "disable-background-networking"),
    *("disable-component-update", "disable-sync", "no-first-run", "window-size=1280,1000"),
    "host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost",
)
BENCHMARKS = (
    *("pinv.Single.time_backward", "pinv.Single.time_forward_backward"),
    *("pinv.Single.track_gradient_error", "pinv.Conditioning.track_gradient_error"),
)
CASES = "#defaults-display tbody tr"
TICKS = "#main-graph .flot-x-axis .flot-tick-label"


def write_asv_results(folder, commit):
    """The results that asv would have of `BENCHMARKS`, every value another."""
    described, results = {"version": 2}, {}
    for name in BENCHMARKS:
        suite = suites_of("pinv", "tiny")[name.rpartition(".")[0]]
        params = [[repr(value) for value in values] for values in suite.params]
        described[name] = {"name": name, "param_names": suite.param_names, "params": params}
        described[name] |= {"code": "", "type": "time", "unit": "seconds", "version": "1"}
        times = [1e-3 * (1 + i) for i, _ in enumerate(itertools.product(*params))]
        results[name] = [times, params, "1"]
    machine = {"machine": "reference-machine", "cpu": "Reference CPU", "version": 1}
    found = {"version": 2, "commit_hash": commit, "env_name": "existing-py", "python": "3.11"}
    found |= {"date": 1_700_000_000_000, "params": machine, "requirements": {}, "env_vars": {}}
    found |= {"result_columns": ["result", "params", "version"], "results": results}
    of_machine = folder / "reference-machine"
    of_machine.mkdir(parents=True)
    (folder / "benchmarks.json").write_text(json.dumps(described))
    (of_machine / "machine.json").write_text(json.dumps(machine))
    results_file = of_machine / f"{commit[:8]}-existing-py.json"
    results_file.write_text(json.dumps(found | {"durations": {}}))


@pytest.fixture(scope="module")
def published(tmp_path_factory, few, write_runs):
    repository = tmp_path_factory.mktemp("repository")

    def run(*command):
        done = process.run(*command, cwd=repository)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    run("git", "init", "--quiet")
    author = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    run("git", *author, "commit", "--quiet", "--allow-empty", "--message=measured")
    shutil.copy(ROOT / "asv.conf.json", repository)
    (repository / "plots").symlink_to(ROOT / "plots")
    write_asv_results(repository / ".asv" / "results", run("git", "rev-parse", "HEAD"))
    write_runs(few, repository / DEFAULT_RESULTS)
    assert "without the page Defaults" not in run(sys.executable, "-m", "asv", "publish")
    return repository / ".asv" / "html"


@pytest.fixture(scope="module")
def address(published):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(published))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
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
    for argument in (*QUIET, f"user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def see(browser, address):
    """Opens a page of the dashboard anew, if one is given, and waits until elements are visible."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.wait import WebDriverWait

    wait = WebDriverWait(browser, 20, ignored_exceptions=[StaleElementReferenceException])

    def see(css, page=None):
        if page is not None:
            browser.get("about:blank")
            browser.get(address + page)
        found = functools.partial(browser.find_elements, "css selector", css)
        return wait.until(lambda _: [element for element in found() if element.is_displayed()])

    yield see
    assert browser.get_log("browser") == []


def test_the_page_loads_nothing_from_elsewhere(published):
    page = (published / "index.html").read_text()
    files = re.findall(r'<script[^>]* src="([^"]*)"', page)
    files += re.findall(r'<link[^>]* href="([^"]*)"', page)
    assert len(files) > 15
    assert [file for file in files if not (published / file).is_file()] == []
    assert [file for file in published.rglob("*.css") if "url(http" in file.read_text()] == []


def test_the_dashboard_opens_with_the_defaults_and_figures(see):
    assert len(see(CASES, page="")) == 2
    (run,) = see("#defaults-provenance li")
    assert "reference-machine" in run.text
    images = see(".defaults-figures img")
    assert len(images) == 5
    assert all(int(image.get_property("naturalWidth")) > 0 for image in images)


def test_what_is_filtered_by_stands_in_the_address(see, browser):
    see(CASES, page="#defaults")
    browser.find_element("css selector", "[name=operation] option:last-child").click()
    (row,) = see(CASES)
    assert row.text.startswith("pinv")
    assert "#defaults?operation=pinv" in browser.current_url
    assert len(see(CASES, page="#defaults?operation=pinv")) == 1


def test_what_is_sorted_by_stands_in_the_address(see, browser):
    def sizes(way, page=None):
        (heading,) = see(f"#defaults-display th[aria-sort={way}]", page=page)
        column = len(heading.find_elements("xpath", "preceding-sibling::th")) + 1
        cells = see(f"{CASES} td:nth-child({column})")
        return [float(cell.get_attribute("data-value")) for cell in cells]

    see(CASES, page="#defaults")
    heading = browser.find_element("css selector", "#defaults-display th:nth-child(11) button")
    heading.click()
    upward = sizes("ascending")
    assert upward == sorted(set(upward))
    heading.click()
    assert sizes("descending") == upward[::-1]
    assert sizes("descending", page=browser.current_url.rpartition("/")[2]) == upward[::-1]


@pytest.mark.parametrize("width", [1280, 400])
def test_the_table_fits_the_screen(see, browser, width):
    screen = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 1000}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        see(CASES, page="#defaults")
        widest = "return document.querySelector('#defaults-display table').scrollWidth"
        assert 300 < browser.execute_script(widest) <= width
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_an_entry_leads_to_its_graph(see, browser):
    link, *_ = see(f"{CASES} a[href^='#pinv.Single.time_backward']", page="#defaults")
    browser.execute_script("arguments[0].click()", link)
    names = [label.text for label in see(TICKS)]
    assert names[0] == "native"
    assert set(names) <= set(strategies.available())
    assert not browser.find_element("id", "defaults-display").is_displayed()
    assert has_ink(browser)


def test_a_graph_is_first_seen_by_size_on_a_logarithmic_axis(see, browser):
    see(TICKS, page="#pinv.Single.time_backward")
    assert "x-axis=shape&y-axis-scale=log" in browser.current_url
    assert has_ink(browser)
    see("#main-graph .flot-base", page="#pinv.Conditioning.track_gradient_error")
    assert "x-axis=log10_cond" in browser.current_url


def test_strategies_have_the_colours_of_the_figures(see):
    from selenium.webdriver.support.color import Color

    see("#main-graph .legend td", page="#pinv.Single.time_backward")
    names = [label.text.rpartition("-")[2] for label in see("#main-graph .legendLabel")]
    boxes = see("#main-graph .legendColorBox div div")
    shown = (box.value_of_css_property("border-top-color") for box in boxes)
    colours = [Color.from_string(each).hex for each in shown]
    assert names == list(registry.built_in())
    assert colours == [style.look(name)["color"] for name in names]


def test_the_pages_of_asv_work_and_its_list_can_be_sorted(see):
    assert see("#summarygrid-display .benchmark-plot canvas", page="#/")
    assert see("#regressions-body", page="#regressions")
    first, *_ = (row.text for row in see("#summarylist-body tbody tr", page="#summarylist"))
    see("#summarylist-body thead th")[0].click()
    assert see("#summarylist-body tbody tr")[0].text != first


def has_ink(browser):
    """Whether coloured bars or lines are on the graph, beside its frame and grid."""
    return browser.execute_script("""
        const canvas = document.querySelector('#main-graph .flot-base');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const pixels = Array.from({ length: data.length / 4 }, (_, i) => data.slice(4 * i, 4 * i + 4));
        const coloured = ([r, g, b, alpha]) => alpha > 60 && Math.max(r, g, b) - Math.min(r, g, b) > 40;
        return pixels.filter(coloured).length > 200;
    """)
