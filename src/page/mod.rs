//! A run as one self-contained page: settings, convergence, solution, time, warnings.

mod comparison;
mod convergence;
mod evolution;
mod solution;

pub use comparison::{ComparedRun, ReferenceErrors, comparison_page, table_by_neurons, table_of_runs};
pub use convergence::extrapolated_loss;
pub use solution::{along_an_interval, over_a_square};

use crate::domain::Domain;
use crate::network::Network;
use crate::plot::{HeatMap, Picture, STYLE, bars, escaped};
use crate::problem::Problem;
use crate::report::{Report, Row, TimeRow, table, time_table};
use std::fmt::Write;

/// Everything a page is made from.
pub struct RunData<'a> {
    /// The result.
    pub report: &'a Report,
    /// The figures at every n.
    pub history: &'a [Row],
    /// The solution.
    pub network: &'a Network,
    /// What was solved.
    pub problem: &'a Problem,
    /// The problem file.
    pub text: &'a str,
    /// u at the times that a flow kept.
    pub frames: &'a [(f64, Network)],
    /// The figures of every step of a flow.
    pub steps: &'a [TimeRow],
}

/// A page and its pictures as files of their own.
pub struct Page {
    /// The page.
    pub html: String,
    /// Name and contents of each picture's file.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A picture with the name of its file.
pub(crate) struct Named {
    name: String,
    picture: Picture,
    map: Option<HeatMap>,
}

impl Named {
    fn chart(name: &str, picture: Picture) -> Self {
        Self {
            name: name.to_string(),
            picture,
            map: None,
        }
    }

    fn map(name: &str, map: HeatMap) -> Self {
        Self {
            name: name.to_string(),
            picture: map.draw(),
            map: Some(map),
        }
    }
}

const PAGE_STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--line:#d4d8dd;--paper:#fff;--box:#f4f6f8;--warn:#fff3cd;--warn-ink:#664d03}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--soft:#9aa4b0;--line:#3d4450;--paper:#15181d;--box:#1d2127;--warn:#3d3416;--warn-ink:#ffe69c}}\
*{box-sizing:border-box}body{margin:0 auto;padding:1.2rem;max-width:1120px;font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}\
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.1rem;margin:2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}\
.lead{color:var(--soft);margin:.2rem 0 1rem}\
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:1rem}\
.plots.small{grid-template-columns:repeat(auto-fit,minmax(min(100%,210px),1fr))}\
.plots>div{max-width:640px}.plots svg{width:100%;height:auto;display:block}\
.scroll{overflow-x:auto;margin-top:1rem}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:14px}\
th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}\
.pairs td,.pairs th{text-align:left;white-space:normal;overflow-wrap:anywhere}.pairs th{font-weight:500;color:var(--soft)}\
.warning{background:var(--warn);color:var(--warn-ink);padding:.5rem .8rem;border-radius:6px;margin:.4rem 0}\
pre{background:var(--box);padding:.8rem;border-radius:6px;overflow-x:auto;font-size:13px}summary{cursor:pointer}";

/// Makes the page.
pub fn page(run: &RunData) -> Page {
    let report = run.report;
    let convergence = figures(run);
    let (solution, small) = solution::pictures(run.problem, run.network);
    let time = Named::chart("time", time(report));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{0}: greedy-pde</title><style>{PAGE_STYLE}{STYLE}</style></head>\n<body>\n<h1>{0}</h1>\n",
        escaped(&report.problem)
    );
    let _ = writeln!(html, "<p class=\"lead\">{}</p>", escaped(&lead(report)));
    for warning in &report.warnings {
        let _ = writeln!(html, "<p class=\"warning\">{}</p>", escaped(warning));
    }
    evolution::frames(run, &mut html);
    section("Solution", &solution, "plots", &mut html);
    if !small.is_empty() {
        let heading = match run.problem.domain {
            Domain::Box { .. } => "One coordinate at a time: a section, and the average over the others",
            _ => "One coordinate at a time: a section through a point inside",
        };
        section(heading, &small, "plots small", &mut html);
    }
    let heading = match run.steps.is_empty() {
        true => "Convergence",
        false => "Over time",
    };
    section(heading, &convergence, "plots", &mut html);
    match &report.time {
        Some(time) => html_table(&time_table(&time.rows), &mut html),
        None => html_table(&table(&report.rows), &mut html),
    }
    if let Some(estimate) = &report.estimate {
        let _ = writeln!(html, "<p id=\"estimate\">{}</p>", escaped(&estimate.in_words()));
    }
    section(
        "Where the time went",
        std::slice::from_ref(&time),
        "plots",
        &mut html,
    );
    settings(run, &mut html);
    html.push_str("</body></html>\n");
    let mut files = Vec::new();
    for named in convergence.iter().chain(&solution).chain(&small).chain([&time]) {
        files.push((format!("{}.svg", named.name), named.picture.file().into_bytes()));
        if let Some(map) = &named.map {
            files.push((format!("{}.png", named.name), map.png()));
        }
    }
    Page { html, files }
}

/// The pictures of solution and convergence, in the order of the page: the name of each and its SVG file.
pub fn pictures(run: &RunData) -> Vec<(String, String)> {
    let (solution, small) = solution::pictures(run.problem, run.network);
    let all = solution.into_iter().chain(small).chain(figures(run));
    all.map(|named| (named.name, named.picture.file())).collect()
}

/// How errors and losses go, with n or over time.
fn figures(run: &RunData) -> Vec<Named> {
    match run.steps.is_empty() {
        true => convergence::pictures(run),
        false => evolution::pictures(run),
    }
}

/// A run in a sentence or two.
pub fn lead(report: &Report) -> String {
    let last = report.rows.last();
    let error = last.and_then(|row| {
        let (name, value) = [("H¹ error", row.h1), ("L² error", row.l2)]
            .into_iter()
            .find_map(|(name, value)| Some((name, value?)))?;
        Some(format!(", {name} {value:.2e}"))
    });
    format!(
        "{} neurons in {} dimension{} on {} points{}, {:.1} s on {} ({}), seed {}, version {}. {}",
        report.neurons,
        report.dimension,
        if report.dimension == 1 { "" } else { "s" },
        report.points,
        error.unwrap_or_default(),
        report.seconds.total,
        report.adapter.as_deref().unwrap_or(&report.backend),
        report.precision,
        report.seed,
        report.version,
        match report
            .time
            .as_ref()
            .and_then(|time| Some((time, time.rows.last()?)))
        {
            Some((time, row)) => format!(
                "{} of {} steps in time ({}); u at t = {}.",
                row.step, time.steps, time.scheme, row.time
            ),
            None => report.stopped.in_words().to_string(),
        }
    )
}

fn section(heading: &str, pictures: &[Named], class: &str, html: &mut String) {
    if pictures.is_empty() {
        return;
    }
    let _ = writeln!(html, "<h2>{}</h2>\n<div class=\"{class}\">", escaped(heading));
    for named in pictures {
        let _ = writeln!(
            html,
            "<div id=\"{}\">{}</div>",
            named.name,
            named.picture.element()
        );
    }
    html.push_str("</div>\n");
}

fn html_table((header, lines): &(Vec<String>, Vec<Vec<String>>), html: &mut String) {
    let cells = |tag: &str, row: &[String]| -> String {
        row.iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)))
            .collect()
    };
    let _ = writeln!(
        html,
        "<div class=\"scroll\"><table><thead><tr>{}</tr></thead><tbody>",
        cells("th", header)
    );
    for line in lines {
        let _ = writeln!(html, "<tr>{}</tr>", cells("td", line));
    }
    html.push_str("</tbody></table></div>\n");
}

fn time(report: &Report) -> Picture {
    let seconds = &report.seconds;
    let parts = [
        ("points", seconds.points),
        ("argmax", seconds.argmax),
        ("refinement", seconds.refine),
        ("Gram matrix", seconds.gram),
        ("projection", seconds.projection),
        ("validation", seconds.validation),
        ("errors", seconds.errors),
    ];
    let known: f64 = parts.iter().map(|(_, amount)| amount).sum();
    let rest = (seconds.total - known).max(0.0);
    let amounts: Vec<(&str, f64, String)> = parts
        .into_iter()
        .chain([("other", rest)])
        .map(|(name, amount)| {
            let percent = 100.0 * amount / seconds.total.max(f64::MIN_POSITIVE);
            (name, amount, format!("{amount:.2} s, {percent:.0} %"))
        })
        .collect();
    bars(&format!("{:.2} s in all", seconds.total), &amounts)
}

/// The settings in force and the problem file.
fn settings(run: &RunData, html: &mut String) {
    html.push_str("<h2>Settings</h2>\n<div class=\"scroll\"><table class=\"pairs\"><tbody>\n");
    let mut pairs = Vec::new();
    flatten("", &run.report.settings, &mut pairs);
    for (key, value) in pairs {
        let _ = writeln!(
            html,
            "<tr><th>{}</th><td>{}</td></tr>",
            escaped(&key),
            escaped(&value)
        );
    }
    let _ = writeln!(
        html,
        "</tbody></table></div>\n<details><summary>The problem file</summary><pre>{}</pre></details>",
        escaped(run.text)
    );
}

fn flatten(key: &str, value: &serde_json::Value, pairs: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::Object(map) => {
            for (name, value) in map {
                let key = if key.is_empty() {
                    name.clone()
                } else {
                    format!("{key}.{name}")
                };
                flatten(&key, value, pairs);
            }
        }
        serde_json::Value::Null => {}
        serde_json::Value::String(text) => pairs.push((key.to_string(), text.clone())),
        other => pairs.push((key.to_string(), other.to_string())),
    }
}
