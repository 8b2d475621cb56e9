"""The page at `/` of a real server, in a real browser."""

import json

from playwright.sync_api import expect

RIVERS = "Rivers carry sand to the sea. Who has seen the wind?"


def send(page) -> None:
    with page.expect_navigation():
        page.click("form button")


def test_what_is_pasted_is_never_run(port, browser):
    attack = "</textarea></p><script>alert(1)</script><img src=x onerror=alert(2)>"
    page, requests = browser(f"http://127.0.0.1:{port}/")
    for text in (attack, json.dumps({"title": attack, "text": attack})):
        page.fill("[name=a]", text)
        page.fill("[name=b]", json.dumps({"id": attack, "text": "Sand."}))
        send(page)
        expect(page.locator(".map path").first).to_be_attached()
        assert page.input_value("[name=a]") == text
    page.fill("[name=b]", json.dumps({"id": "b", "text": 3, attack: 1}))
    send(page)
    assert "wrong type" in page.inner_text("[role=alert]")
    assert page.locator("main img").count() == 0 and len(set(requests)) == 1


def test_the_page_compares_what_is_pasted(port, browser):
    page, requests = browser(f"http://127.0.0.1:{port}/")
    page.fill("[name=a]", RIVERS)
    page.fill("[name=b]", '{"title": "B", "text": "<b>Sand</b> & sea. It flows."}')
    send(page)
    expect(page.locator(".map path").first).to_be_attached()
    assert "<b>Sand</b> & sea" in page.inner_text(".pane >> nth=1")
    assert page.input_value("[name=a]") == RIVERS
    page.fill("[name=b]", '{"')
    send(page)
    assert "bad JSON" in page.inner_text("[role=alert]")
    assert {url.split("/")[2] for url in requests} == {f"127.0.0.1:{port}"}
