"""The report of a run in a real browser: Debian's Chromium, driven by Playwright."""

import shutil
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

CHROMIUM = shutil.which("chromium")
PHONE = 390
SECTIONS = (
    "summary", "quality", "ablations", "others", "time", "fidelity", "slices", "paper", "settings"
)  # fmt: skip

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path"),
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
def open_page(browser, report_path):
    """Opens the report from disk; at the end, nothing was complained about or asked for."""
    pages, complaints, requests = [], [], []

    def opened(path=report_path, **options):
        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield opened
    for page in pages:
        page.close()
    assert complaints == []
    assert len(requests) == len(pages)  # the page itself
    assert all(url.endswith("/report.html") for url in requests)


def test_every_section_and_figure_is_seen(open_page):
    page = open_page()
    assert page.locator("section").count() == len(SECTIONS)
    for name in SECTIONS:
        assert page.locator(f"#{name} h2").is_visible()
    figures = page.locator("svg").all()
    assert len(figures) == 10  # quality and time of 2 domains, fidelity of 1, 2 slices, 3 figures
    for figure in figures:
        box = figure.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 100
        assert figure.get_attribute("aria-label")


FIGURE_TEXTS = """() => [...document.querySelectorAll("svg text")].filter(
  (text) => text.textContent.trim()
).map((text) => {
  const box = text.getBoundingClientRect();
  const place = [box.left + scrollX, box.top + scrollY, box.right + scrollX, box.bottom + scrollY];
  const fill = getComputedStyle(text).fill;
  text.style.visibility = "hidden";
  return [text.textContent, fill, place];
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_of_figures_stand_out_from_what_is_behind_them(open_page, scheme):
    page = open_page(color_scheme=scheme)
    texts = page.evaluate(FIGURE_TEXTS)
    assert {"no slope", "LODL", "random", "true utility"} <= {text for text, _, _ in texts}
    behind = Image.open(BytesIO(page.screenshot(full_page=True))).convert("RGB")
    for text, fill, place in texts:
        pixels = np.asarray(behind.crop([round(edge) for edge in place])).reshape(-1, 3)
        assert contrast(rgb(fill), np.median(pixels, axis=0)) >= 4.5, text


def rgb(colour):
    """Returns the channels of a computed rgb(...) colour."""
    return [int(part) for part in colour[4:-1].split(",")]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    """Returns the relative luminance of a colour, by the formula of WCAG."""
    channels = [channel / 255 for channel in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_phone_scrolls_in_one_direction_only(open_page):
    page = open_page(viewport={"width": PHONE, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE
    assert page.locator("#quality svg").first.bounding_box()["width"] <= PHONE


def test_a_wide_figure_stays_readable_on_a_phone_and_is_scrolled_by_keyboard(open_page):
    page = open_page(viewport={"width": PHONE, "height": 844}, reduced_motion="reduce")
    box = page.get_by_role("region", name="Figure: Losses of a choice between two agents")
    assert box.locator("svg").bounding_box()["width"] >= 0.84 * 11 * 96  # drawn 11 inches wide
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("box => box.scrollLeft > 0", arg=box.element_handle())


def test_the_papers_figures_are_told_as_tables(open_page):
    told = open_page().locator("#paper table")
    assert told.count() == 2
    assert "1 of 1" in told.first.inner_text()
    assert "by the formula" in told.last.inner_text()
