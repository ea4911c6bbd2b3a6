"""Markup: text stays text, only known elements can be built, a page loads and runs nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld.markup import (
    Html,
    document,
    element,
    escape,
    fragment,
    joined,
    palette,
    shortened,
    table,
)
from byteweld.markup.charts import bar, curve

HOSTILE = (
    "</style><script>alert(1)</script><img src=x onerror=alert(1)>",
    '" onclick="alert(1)" x=\'',
    "&lt;b&gt;&#60;",
    "-->]]><!--",
    "\u202eabc\u202c\u2066\u200f\ufeff",
    "\x00\x1b[31m\x7f\x9b",
    "\udc80\ud800",
)


class Reader(HTMLParser):
    """Collects tags, attributes and text as a browser would parse them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_displayed_and_never_becomes_markup(text):
    page = document(text, element("p", text, title=text), table([text], [[text]]))
    seen = read(page)
    assert not {"script", "img", "b", "link", "iframe"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    page.encode()  # fails on a lone surrogate
    assert not re.search("[\x00-\x08\x1b\x7f-\x9f\u200f\u202a-\u202e\u2066-\u2069\ufeff]", page)


@given(st.text())
def test_any_text_is_parsed_back_as_text(text):
    hidden = re.compile("⟨U\\+[0-9A-F]+⟩")
    seen = read(element("p", text) + element("p", "end"))
    assert seen.tags == ["p", "p"]
    shown = "".join(seen.text).removesuffix("end")
    if not hidden.search(escape(text)):
        assert shown == text


@given(st.text())
def test_any_attribute_value_stays_one_attribute(text):
    seen = read(element("span", "x", title=text))
    assert [name for name, _ in seen.attributes] == ["title"]


def test_only_the_result_of_element_is_markup():
    made = element("b", "1 < 2")
    assert made == "<b>1 &lt; 2</b>" and isinstance(made, Html)
    assert element("p", made) == "<p><b>1 &lt; 2</b></p>"
    assert element("p", str.__str__("<b>")) == "<p>&lt;b&gt;</p>"
    # Concatenation returns a plain str, which is escaped again.
    assert element("p", made + "") == "<p>&lt;b&gt;1 &amp;lt; 2&lt;/b&gt;</p>"


def test_none_adds_nothing_and_numbers_are_formatted():
    assert joined(None, 1, [2.5, ["a", None]], "") == "12.5a"
    assert element("td", None, class_=None, open=False) == "<td></td>"
    assert element("details", open=True) == "<details open></details>"


@pytest.mark.parametrize(
    "tag", ["script", "a", "img", "iframe", "link", "object", "P", "p onclick"]
)
def test_other_elements_are_not_allowed(tag):
    with pytest.raises(ValueError, match=r"^element .* is not allowed"):
        element(tag)


@pytest.mark.parametrize("name", ["onclick", "style", "href", "src", "srcset", "action"])
def test_other_attributes_are_not_allowed(name):
    with pytest.raises(ValueError, match=r"^attribute .* is not allowed"):
        element("p", **{name: "x"})


def test_a_pages_policy_allows_only_its_own_style():
    page = document("title", element("p", "text"))
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.search('Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy == (
        f"default-src &#x27;none&#x27;; style-src &#x27;sha256-{digest}&#x27;; "
        "base-uri &#x27;none&#x27;; form-action &#x27;none&#x27;"
    )
    assert palette() in style
    assert not re.search(r"url\(|@import|https?:|//", style)
    assert page == document("title", element("p", "text"))  # the same bytes every time


def test_the_style_of_a_notebook_affects_nothing_outside():
    style = re.search("<style>(.*?)</style>", fragment("x"), re.DOTALL)[1]
    plain = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    plain = re.sub(r"@media[^{]*\{", "", plain)
    selectors = [
        one.strip() for group in re.findall(r"([^{}]+)\{", plain) for one in group.split(",")
    ]
    assert len(selectors) > 50
    for selector in selectors:
        assert re.match(r"(div)?\.byteweld\b", selector), selector


def test_a_bar_is_filled_up_to_its_share():
    assert [re.findall(r'<rect width="([\d.]+)"', bar(n, "lane1")) for n in (0, 0.25, 1, 7)] == [
        ["0.00"], ["25.00"], ["100.00"], ["100.00"]
    ]  # fmt: skip
    assert 'class="bar lane1"' in bar(0, "lane1")


def test_a_curve_goes_from_corner_to_corner():
    made = curve([(0, 1.0), (50, 2.0), (100, 3.0)], "a <label>", ("merges", "rate"))
    assert 'd="M52.0 192.0L338.0 102.0L624.0 12.0"' in made
    assert "<title>a &lt;label&gt;</title>" in made
    assert ">1.00<" in made and ">3.00<" in made
    assert "NaN" not in curve([(0, 1.0)], "one", ("x", "y"))


def test_the_items_after_the_first_few_are_collapsed():
    def show(items):
        return " ".join(items)

    assert shortened("abc", 3, "letter", show) == "a b c"
    assert shortened("abcd", 3, "letter", show) == "a b c d"  # one more is not worth a click
    expected = "a b c<details><summary>2 more letters</summary>d e</details>"
    assert shortened("abcde", 3, "letter", show) == expected
    assert shortened("", 3, "letter", show) == ""
