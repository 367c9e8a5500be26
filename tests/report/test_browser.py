"""The report of a fit in a real browser: Debian's Chromium, driven by Playwright."""

import shutil

import pytest

from lodl.report.fit_page import write_page

CHROMIUM = shutil.which("chromium")
PHONE = 390

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


@pytest.fixture(scope="module")
def path(tmp_path_factory, fit_result):
    return write_page(fit_result(), tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def open_page(browser, path):
    """Opens the report from disk. In the end, nothing was complained about or requested."""
    pages, complaints, requests = [], [], []

    def opened(**options):
        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        page.locator("summary").click()
        return page

    yield opened
    for page in pages:
        page.close()
    assert complaints == []
    assert len(requests) == len(pages)  # the page itself
    assert all(url.endswith("/report.html") for url in requests)


def test_the_headline_and_every_figure_are_seen(open_page):
    page = open_page()
    assert page.locator("h1").is_visible()
    assert page.locator("#headline .number").is_visible()
    for figure in page.locator("svg").all():
        assert figure.bounding_box()["width"] > 200
        assert figure.get_attribute("aria-label")


def first_column(table):
    return [text.strip() for text in table.locator("tbody th").all_inner_texts()]


def test_a_table_is_sorted_by_click_and_by_keyboard(open_page):
    page = open_page()
    table = page.locator("#trials table")
    before = first_column(table)
    assert before[0] == "squared error"
    heading = table.locator("thead th").nth(1)
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert first_column(table) == before
    heading.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert first_column(table) == before[::-1]
    table.locator("thead button").first.click()
    assert first_column(table) == sorted(before, key=str.lower)
    assert heading.get_attribute("aria-sort") is None


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def text_colour(page):
    return page.evaluate("getComputedStyle(document.querySelector('svg text')).fill")


def test_the_theme_follows_the_reader_and_the_button(open_page):
    light, dark = (open_page(color_scheme=scheme) for scheme in ("light", "dark"))
    shown = [(background(page), text_colour(page)) for page in (light, dark)]
    assert shown[0] != shown[1]
    button = dark.locator("#theme")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert (background(dark), text_colour(dark)) == shown[0]


def test_a_printed_page_is_light_and_has_no_buttons(open_page):
    light, dark = (open_page(color_scheme=scheme) for scheme in ("light", "dark"))
    dark.emulate_media(media="print")
    assert (background(dark), text_colour(dark)) == (background(light), text_colour(light))
    assert not dark.locator("#theme").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_the_background(open_page, scheme):
    page = open_page(color_scheme=scheme)
    paper = rgb(background(page))
    for selector in ("p", "td", "nav a", ".scope", "thead button"):
        colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).color")
        assert contrast(rgb(colour), paper) >= 4.5  # WCAG AA


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


def test_every_table_is_reached_by_keyboard_and_has_a_name(open_page):
    page = open_page()
    boxes = page.locator(".scroll").all()
    assert boxes
    for box in boxes:
        assert box.get_attribute("tabindex") == "0"
        assert box.get_attribute("aria-label") == box.locator("caption").inner_text()


def test_the_page_is_complete_without_scripts(open_page):
    page = open_page(java_script_enabled=False)
    assert page.locator("#trials table").is_visible()
    assert not page.locator("#theme").is_visible()


def test_a_phone_shows_every_cell_of_a_table_without_scrolling(open_page):
    page = open_page(viewport={"width": PHONE, "height": 844})
    cells = page.locator(".stacked td:not(:empty), .stacked tbody th").all()
    assert len(cells) > 20
    for cell in cells:
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE
    titles = {cell.get_attribute("data-title") for cell in cells}
    assert {"squared error decides", "this model decides", "avoided", "seconds"} <= titles


def test_the_details_are_folded_until_they_are_opened(open_page):
    page = open_page()
    assert page.locator("#trials table").is_visible()
    page.locator("summary").click()
    assert not page.locator("#trials table").is_visible()
    page.locator("nav a", has_text="Details").click()
    assert page.locator("#gain table").is_visible()
