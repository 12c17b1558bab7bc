//! Several runs side by side: tables for people and for pages, and their curves together.

use super::{PAGE_STYLE, extrapolated_loss, html_table};
use crate::plot::{Chart, Mark, Picture, STYLE, Scale, Series, escaped};
use crate::report::{Column, Report, Row};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Colours before they come again, with another kind of line.
const COLORS: usize = 6;

/// A run that is compared.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    /// What it is called here.
    pub name: String,
    /// Its result.
    pub report: Report,
    /// ‖u‖ of the exact solution in L² and H¹, where it is known.
    pub norms: Option<[f64; 2]>,
    /// How it compares with given values, if there are any.
    pub reference: Option<ReferenceErrors>,
}

/// How far a network is from given values.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ReferenceErrors {
    /// How many values.
    pub points: usize,
    /// The root of the mean square of the differences.
    pub rms: f64,
    /// The largest difference.
    pub max: f64,
    /// `rms` as a part of the same of the values themselves.
    pub relative: f64,
}

const LOSS: &str = "loss";

/// The figures that runs are compared by, the errors first.
const FIGURES: [Column; 5] = [
    ("L2 error", |row| row.l2),
    ("H1 error", |row| row.h1),
    // Two things that are called energy: a norm, or a relative excess.
    ("energy error", |row| row.energy.filter(|_| row.excess.is_none())),
    ("relative excess", |row| row.excess),
    (LOSS, |row| Some(row.loss)),
];

impl ComparedRun {
    /// The figures of the last network.
    pub fn last(&self) -> Option<&Row> {
        self.report.rows.last()
    }

    /// The last errors in L² and H¹ as parts of the solution's norms.
    pub fn relative(&self) -> [Option<f64>; 2] {
        let row = self.last();
        let errors = [row.and_then(|row| row.l2), row.and_then(|row| row.h1)];
        let norms = self.norms.unwrap_or_default();
        [0, 1].map(|i| errors[i].filter(|_| norms[i] > 0.0).map(|error| error / norms[i]))
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |value| format!("{value:.3e}"))
}

/// A line per run: how many neurons, errors, loss, time.
pub fn table_of_runs(runs: &[ComparedRun]) -> (Vec<String>, Vec<Vec<String>>) {
    let has_reference = runs.iter().any(|run| run.reference.is_some());
    let mut header = vec![
        "run", "problem", "n", "L2 error", "relative", "H1 error", "relative",
    ];
    let energies: Vec<Column> = FIGURES[2..4]
        .iter()
        .filter(|(_, value)| runs.iter().any(|run| run.last().and_then(value).is_some()))
        .copied()
        .collect();
    header.extend(energies.iter().map(|(name, _)| *name));
    header.extend(["loss", "seconds"]);
    if has_reference {
        header.extend(["values", "rms off by", "relative", "at most"]);
    }
    let lines = runs.iter().map(|run| {
        let row = run.last();
        let [l2, h1] = run.relative();
        let mut line = vec![
            run.name.clone(),
            run.report.problem.clone(),
            run.report.neurons.to_string(),
            shown(row.and_then(|row| row.l2)),
            shown(l2),
            shown(row.and_then(|row| row.h1)),
            shown(h1),
        ];
        line.extend(energies.iter().map(|(_, value)| shown(row.and_then(value))));
        line.push(row.map_or("-".to_string(), |row| format!("{:.6e}", row.loss)));
        line.push(format!("{:.2}", run.report.seconds.total));
        if let Some(errors) = &run.reference {
            line.push(errors.points.to_string());
            line.extend([errors.rms, errors.relative, errors.max].map(|value| shown(Some(value))));
        }
        line
    });
    (header.into_iter().map(str::to_string).collect(), lines.collect())
}

/// The figure that tells runs apart best (H1 errors, else L2, else losses) at every n: its name, and a
/// column per run.
pub fn table_by_neurons(runs: &[ComparedRun]) -> (Vec<String>, Vec<Vec<String>>) {
    let known = |(_, value): &Column| {
        let mut rows = runs.iter().flat_map(|run| &run.report.rows);
        rows.any(|row| value(row).is_some())
    };
    let [l2, h1, _, _, loss] = FIGURES;
    let (name, value) = [h1, l2].into_iter().find(known).unwrap_or(loss);
    let numbers: BTreeSet<usize> = runs
        .iter()
        .flat_map(|run| run.report.rows.iter().map(|row| row.n))
        .collect();
    let header = [format!("{name} at n =")]
        .into_iter()
        .chain(runs.iter().map(|run| run.name.clone()));
    let lines = numbers.into_iter().map(|n| {
        let figures = runs.iter().map(|run| {
            let row = run.report.rows.iter().find(|row| row.n == n);
            shown(row.and_then(value))
        });
        [n.to_string()].into_iter().chain(figures).collect()
    });
    (header.collect(), lines.collect())
}

/// Which quantity the curves are drawn over.
#[derive(Clone, Copy)]
enum Over {
    Neurons,
    Seconds,
}

/// What the losses are measured from: nothing where they are positive or of different problems, else (an energy is negative) the
/// lowest that any run would end with.
fn lowest_loss(runs: &[ComparedRun]) -> Option<f64> {
    let all = || runs.iter().flat_map(|run| &run.report.rows);
    let same = |run: &ComparedRun| run.report.problem == runs[0].report.problem;
    if all().all(|row| row.loss > 0.0) || !runs.iter().all(same) {
        return None;
    }
    let limits = runs.iter().filter_map(|run| {
        let rows = &run.report.rows;
        extrapolated_loss(rows).or_else(|| rows.last().map(|row| row.loss))
    });
    limits.reduce(f64::min)
}

/// The curves of one figure.
fn chart(runs: &[ComparedRun], (name, value): Column, over: Over) -> Option<Picture> {
    let above = match name {
        LOSS => lowest_loss(runs),
        _ => None,
    };
    let name = match above {
        Some(_) => "loss above its lowest limit",
        None => name,
    };
    let series = runs.iter().enumerate().filter_map(|(index, run)| {
        let points: Vec<(f64, f64)> = run
            .report
            .rows
            .iter()
            .filter_map(|row| {
                let x = match over {
                    Over::Neurons => row.n as f64,
                    Over::Seconds => row.seconds,
                };
                // Both axes are logarithmic.
                let y = value(row)? - above.unwrap_or(0.0);
                (x > 0.0 && y > 0.0 && y.is_finite()).then_some((x, y))
            })
            .collect();
        (!points.is_empty()).then(|| Series {
            name: run.name.clone(),
            mark: match index < COLORS {
                true => Mark::LineWithDots,
                false => Mark::Dashed,
            },
            color: index % COLORS,
            points,
        })
    });
    let series: Vec<Series> = series.collect();
    let (x_label, x) = match over {
        Over::Neurons => ("n, the number of neurons", Scale::Log(2)),
        Over::Seconds => ("seconds", Scale::Log(10)),
    };
    let chart = Chart {
        title: format!("{name} against {}", x_label.split(',').next().unwrap_or_default()),
        x_label: x_label.to_string(),
        x,
        y: Scale::Log(10),
        series,
        small: false,
        reach: None,
    };
    (!chart.series.is_empty()).then(|| chart.draw())
}

/// The comparison as one self-contained page.
pub fn comparison_page(runs: &[ComparedRun]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>Comparison: greedy-pde</title><style>{PAGE_STYLE}{STYLE}</style></head>\n<body>\n<h1>{} runs compared</h1>\n",
        runs.len()
    );
    for warned in runs.iter().filter(|run| !run.report.warnings.is_empty()) {
        let words = warned.report.warnings.join("; ");
        let _ = writeln!(
            html,
            "<p class=\"warning\">{}: {}</p>",
            escaped(&warned.name),
            escaped(&words)
        );
    }
    html_table(&table_of_runs(runs), &mut html);
    for (heading, over) in [("Against n", Over::Neurons), ("Against time", Over::Seconds)] {
        let _ = writeln!(html, "<h2>{heading}</h2>\n<div class=\"plots\">");
        for picture in FIGURES.into_iter().filter_map(|figure| chart(runs, figure, over)) {
            let _ = writeln!(html, "<div>{}</div>", picture.element());
        }
        html.push_str("</div>\n");
    }
    html_table(&table_by_neurons(runs), &mut html);
    html.push_str("</body></html>\n");
    html
}
