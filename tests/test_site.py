"""The site in a real browser, opened from disk. `make docs` builds it."""

import re
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
CHROMIUM = shutil.which("chromium")
DESKTOP, PHONE = {"width": 1300, "height": 900}, {"width": 390, "height": 844}
PAGES = (
    "index.html",
    "tutorials/first-loss.html",
    "tutorials/command-line.html",
    "how-to/choose.html",
    "how-to/choose-a-family.html",
    "how-to/from-pyepo.html",
    "reference/faq.html",
    "reference/glossary.html",
    "results/in-money.html",
    "gallery/index.html",
    "gallery/problems/plot_knapsack.html",
    "gallery/problems/plot_battery.html",
    "explanation/decision-families.html",
    "reference/api/lodl.learn_loss.html",
    "reference/cli.html",
    "results/pages/paper.html",
)
GALLERY = sorted(path.relative_to(SITE) for path in SITE.glob("gallery/*/plot_*.html"))

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built"),
]


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=120_000
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Opens a page of the site; at the end, nothing was complained about or fetched from afar."""
    pages, complaints = [], []

    def note(message):
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def request(request):
        if not request.url.startswith(("file:", "data:")):
            complaints.append(request.url)

    def failed(request):
        if request.failure != "net::ERR_ABORTED":  # by leaving the page; a missing file is another
            complaints.append(request.url)

    def opened(path, **options):
        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", request)
        page.on("requestfailed", failed)
        file, _, query = str(path).partition("?")
        page.goto((SITE / file).as_uri() + (f"?{query}" if query else ""))
        return page

    yield opened
    found = list(complaints)  # closing a page aborts requests that are under way, such as its icon
    for page in pages:
        page.close()
    assert found == []


def test_no_page_shows_a_warning_or_the_folder_that_it_was_built_in():
    pages = {
        path.relative_to(SITE): path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")
    }
    shown = re.compile(rf"Warning: |{re.escape(str(SITE.parents[2]))}/")
    assert [page for page, text in pages.items() if shown.search(text)] == []


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_from_disk_and_scrolls_in_one_direction(open_page, path, viewport):
    page = open_page(path, viewport=viewport)
    assert page.locator("h1").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("knapsack", "Knapsack"),
        ("Gurobi", "Your own solver"),
        ("context", "context"),
        ("licence", "Questions"),
        ("SPO+", "Coming from PyEPO"),
        ("CSV", "From CSV files to decisions"),
    ],
)
def test_search_finds_what_users_look_for(open_page, words, title):
    page = open_page(f"search.html?q={quote(words)}")
    page.wait_for_selector("#search-results li a")
    found = page.locator("#search-results li a").all_inner_texts()
    assert any(title in entry for entry in found)
    summaries = page.locator("#search-results li p.context").all_inner_texts()
    assert len(summaries) > len(found) / 2
    assert min(map(len, summaries)) >= 30


def test_results_in_money_come_first_and_lab_notes_last(open_page):
    page = open_page("results/index.html", viewport=DESKTOP)
    listed = page.locator(".bd-docs-nav li a").all_inner_texts()
    assert listed[:2] == ["Real data, in money", "Real data"]
    assert listed.index("Real: all tables") < listed.index("Notes on rounds")


def test_every_example_has_its_picture(open_page):
    assert len(GALLERY) >= 10
    page = open_page("gallery/index.html")
    for path in GALLERY:
        page.goto((SITE / path).as_uri())
        widths = page.eval_on_selector_all(
            "img.sphx-glr-single-img", "images => images.map((image) => image.naturalWidth)"
        )
        assert widths, path
        assert min(widths) > 300, path


def test_formulas_are_drawn_by_the_browser(open_page):
    page = open_page("explanation/decision-families.html")
    box = page.locator("math").first.bounding_box()
    assert box["width"] > 5


def test_the_theme_follows_the_reader(open_page):
    colours = {
        open_page("index.html", color_scheme=scheme).evaluate(
            "getComputedStyle(document.body).backgroundColor"
        )
        for scheme in ("light", "dark")
    }
    assert len(colours) == 2


def test_code_of_an_example_leads_to_the_reference():
    page = (SITE / "gallery/problems/plot_knapsack.html").read_text()
    assert re.search(r'href="[./]*/reference/api/lodl.DecisionFocusedRegressor.html', page)
