"""The report: complete, safe, and in need of no other file."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from halfscope import _core
from halfscope.plotting.drawings import draw
from halfscope.report import report_page, write_report
from halfscope.report.__main__ import main
from halfscope.report.section import section_of
from halfscope.results import Experiment, read_experiment
from synthetic import write_json, write_results


class Page(HTMLParser):
    """Tags with their attributes, and the text of the page outside <style> and <script>."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.text += data


@pytest.fixture(scope="module")
def page(experiment: Experiment) -> Page:
    return Page(report_page([section_of(experiment, draw(experiment))]))


def figures(page: Page) -> list[str]:
    """The SVG sources."""
    sources = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    return [unquote(source.removeprefix("data:image/svg+xml,")) for source in sources]


def test_every_tag_is_closed(page: Page) -> None:
    assert page.open == []


def test_says_what_the_records_say(page: Page, experiment: Experiment) -> None:
    assert experiment.summary["verdict"] in page.text
    assert experiment.summary["paper"] in page.text
    for words in ("71.00", "70.25 to 71.75", "82.0 %", "3 of 3", "g++ 12.2.0", "learning_rate", "1e-05"):
        assert words in page.text, words
    arms = "fp32,fp16_mixed,fp16_no_master,fp16_unprotected"
    shared = ("steps=600", "batch=64", "learning_rate=1e-05")  # the loss scale is not: the arms differ in it
    words = [f"halfscope run master-copy --arms {arms} --seeds 3", *(f"--set {setting}" for setting in shared)]
    assert " \\\n    ".join(words) + "\n" in page.text


def test_reductions_are_summed_per_arm(page: Page) -> None:
    # 30 observed steps in each of 3 seeds, with 2 of 16 reductions overflowing in each.
    row = page.text[page.text.index("Reductions") :].split("fp16_unprotected")[1]
    assert row.startswith("1,44050,176180810812.5")


def test_nothing_external(page: Page) -> None:
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed"), tag
        for name in ("src", "href", "srcset", "data", "action", "poster", "background"):
            if attributes.get(name):
                assert attributes[name].startswith(("data:", "#")), (tag, attributes[name][:80])
    for drawing in figures(page):
        assert "<script" not in drawing
        assert all(link.startswith(("#", "data:")) for link in re.findall(r'href="([^"]*)"', drawing))
        assert all(link.startswith("#") for link in re.findall(r"url\(([^)]*)\)", drawing))
    style = Path(report_page.__code__.co_filename).with_name("report.css").read_text() + _core.explorer_style()
    assert "url(" not in style and "@import" not in style
    script = _core.explorer_script()
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|sendBeacon|import)\b", re.sub(r"//.*", "", script))
    policies = [attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes]
    assert len(policies) == 1 and policies[0].startswith("default-src 'none'; ")


def test_seven_figures_each_described(page: Page) -> None:
    assert [attributes["alt"].split()[0] for tag, attributes in page.tags if tag == "img"] == [
        "test", "Training", "Share", "Histogram", "Exponents", "Exponents", "Weight",
    ]  # fmt: skip
    assert all("<svg" in drawing for drawing in figures(page))


def test_text_is_escaped(results: Path) -> None:
    attack = "<script>alert('x')</script> & \"more\""
    folder = results / "master-copy"
    summary = json.loads((folder / "summary.json").read_text())
    summary |= {"verdict": attack, "paper": attack, "title": attack, "metric": attack}
    write_json(folder / "summary.json", summary)
    for name in ("config.json", "environment.json"):
        path = folder / "fp32/seed0" / name
        write_json(path, json.loads(path.read_text()) | {attack: attack})
    experiment = read_experiment(folder)
    html = report_page([section_of(experiment, draw(experiment))])
    tags = Page(html).tags
    assert [attributes for tag, attributes in tags if tag == "script"] == [
        {"type": "application/json"}, {"type": "module", "nonce": "halfscope"},
    ]  # fmt: skip
    assert Page(html).text.count(attack) >= 6


def test_same_records_same_file(results: Path) -> None:
    first = write_report(results).read_bytes()
    assert write_report(results).read_bytes() == first
    # Names that matplotlib makes of positions would differ by chance.
    assert not any(re.search(r"#p[0-9a-f]{10}", drawing) for drawing in figures(Page(first.decode())))
    assert sorted(path.name for path in results.iterdir()) == ["figures", "master-copy", "report.html"]


def test_figures_are_also_files(results: Path) -> None:
    page = Page(write_report(results).read_text())
    files = sorted((results / "figures").iterdir())
    assert "master-copy_loss_curves.svg" in [path.name for path in files]
    assert sorted(" ".join(path.read_text().split("\n")) for path in files) == sorted(figures(page))


def test_arm_that_diverged_everywhere_and_unfinished_runs(results: Path) -> None:
    (results / "master-copy/fp32/seed1/status").write_text("RUNNING\n")
    experiment = read_experiment(results / "master-copy")
    page = Page(report_page([section_of(experiment, draw(experiment))]))
    assert "armseed 1seed 2" in page.text and "divergeddiverged" in page.text
    assert "Not finished, so not drawn: fp32, seed 1: RUNNING." in page.text


def test_several_experiments(results: Path) -> None:
    write_results(results, seeds=1, steps=10, name="batchnorm-reduction")
    html = write_report(results).read_text()
    assert [attributes["id"] for tag, attributes in Page(html).tags if tag == "section"] == [
        "batchnorm-reduction", "master-copy",
    ]  # fmt: skip


def test_main(results: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture) -> None:
    assert main([str(results)]) == 0
    assert capsys.readouterr().out == f"{results}/report.html\n"
    assert main([str(tmp_path_factory.mktemp("empty"))]) == 2
    assert "no results here" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([])


def test_help(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "usage: python -m halfscope.report" in (said := capsys.readouterr().out) and "DIR/report.html" in said


def test_settings_that_differ_stand_in_place_of_the_verdict(experiment: Experiment) -> None:
    differing = [
        {"key": "steps", "own": "600", "found": "60", "arms": []},
        {"key": "batch", "own": "4", "found": "<8>", "arms": ["fp32", "fp16_mixed"]},
    ]
    changes = {"verdict": "", "verdict_withheld": "other settings", "settings_differ": differing}
    changed = dataclasses.replace(experiment, summary={**experiment.summary, **changes})
    page = Page(report_page([section_of(changed, [])]))
    assert "No verdict: other settings." in page.text
    assert "steps = 60 (own: 600); batch = <8> (own: 4) in fp32, fp16_mixed." in page.text
    assert not any(attributes.get("class") == "verdict" for _, attributes in page.tags)


def test_the_page_does_not_depend_on_the_number_of_processes(results: Path) -> None:
    shutil.copytree(results / "master-copy", results / "again")
    alone = write_report(results).read_bytes()
    assert write_report(results, processes=2).read_bytes() == alone


def test_findings_are_drawn_as_they_are(experiment: Experiment) -> None:
    sections = [
        {"heading": "The paper's <table>", "columns": ["row", "FP32", "mixed"],
         "rows": [["A & B", "76.50", "-"], ["C", "60.00", "+1.5"]], "note": "Ours & theirs."},
        {"heading": "", "lines": ["fp16: <step 1>", "more"], "columns": [], "rows": [], "note": ""},
        {"heading": "Orders", "columns": ["order", "division"], "rows": [["ring", "ddp"]] * 30, "note": ""},
    ]  # fmt: skip
    found = [{"key": "published", "sections": sections[:2]}, {"key": "orders", "sections": sections[2:]}]
    text = section_of(dataclasses.replace(experiment, summary={**experiment.summary, "findings": found}), []).html
    assert "<h3>The paper&#x27;s &lt;table&gt;</h3>" in text and '<p class="note">Ours &amp; theirs.</p>' in text
    assert "<tr><th>row</th><th class=number>FP32</th><th class=number>mixed</th></tr>" in text
    assert "<tr><td>A &amp; B</td><td class=number>76.50</td><td class=number>-</td></tr>" in text
    assert "<ul><li>fp16: &lt;step 1&gt;</li><li>more</li></ul>" in text
    assert "<details><summary>All 30 rows</summary>" in text and text.count("<tr><td>ring</td><td>ddp</td></tr>") == 30


def test_shares_of_fp32_stand_under_a_heading_of_their_own(detection: Experiment) -> None:
    head, *rows = re.findall(r"<tr>.*?</tr>", section_of(detection, []).html)[:3]
    titles = re.findall(r"<th[^>]*>(.*?)</th>", head)
    fp32, fp16 = (dict(zip(titles, re.findall(r"<td[^>]*>(.*?)</td>", row))) for row in rows)
    nothing = "\N{EN DASH}"
    assert (fp32["gradients flushed"], fp32["FP16 would flush"], fp32["gradients overflowing"]) == (
        nothing, "25.0 %", nothing,
    )  # fmt: skip
    assert (fp16["gradients flushed"], fp16["FP16 would flush"], fp16["gradients overflowing"]) == (
        "25.0 %", nothing, "0 %",
    )  # fmt: skip


def test_the_summary_has_the_claims_in_the_papers_order(results: Path) -> None:
    summary = json.loads((results / "master-copy/summary.json").read_text())
    expectations = [{"arm": arm, "baseline": "fp32", "expected": "as_good", "margin": 0.5, "judgement": "holds"}
                    for arm in ("fp16_mixed", "fp16_pure")]  # fmt: skip
    for name, place, judged in (("zebra", 1, "holds"), ("ape", 2, "does_not_hold"), ("cat", 3, "holds"),
                                ("bee", 0, "undecided")):  # fmt: skip
        folder = results / name
        shutil.copytree(results / "master-copy", folder)
        claim = {"text": f"{name} <b>", "judgement": judged, "expectations": expectations if name != "cat" else []}
        write_json(folder / "summary.json", summary | {"experiment": name, "place": place, "claim": claim})
    shutil.rmtree(results / "master-copy")
    html = write_report(results).read_text()
    rows = re.findall(r'<a href="#(\w+)">.*?<td>(.*?)</td><td>(.*?)</td><td class="([a-z-]+)">(.*?)</td>', html)
    assert [row[0] for row in rows] == ["zebra", "ape", "cat", "bee"]
    assert [row[4] for row in rows] == ["holds", "does not hold", "not judged", "undecided"]
    assert rows[0][1] == "zebra &lt;b&gt;"
    assert re.fullmatch(r"test accuracy \(%\): fp32 [0-9.]+, fp16_mixed [0-9.]+, fp16_pure not run", rows[0][2])
