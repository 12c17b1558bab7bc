//! A flow in time: u frame by frame, and its figures over t.

use super::solution::{along_an_interval, on_a_grid};
use super::{Named, RunData};
use crate::network::Network;
use crate::plot::{Chart, Mark, Picture, Scale, Series};
use crate::problem::Problem;
use crate::report::TimeRow;
use std::fmt::Write;

/// Frames that a page shows: of more only every so manieth.
const MOST_FRAMES: usize = 60;
/// Values of a map in each coordinate: there are many.
const MAP: usize = 96;

/// Energy, errors and the number of neurons over t.
pub(super) fn pictures(run: &RunData) -> Vec<Named> {
    let line = |name: &str, color: usize, value: fn(&TimeRow) -> Option<f64>| Series {
        name: name.to_string(),
        mark: Mark::Line,
        color,
        points: run
            .steps
            .iter()
            .filter_map(|row| Some((row.time, value(row)?)))
            .collect(),
    };
    let errors: Vec<Series> = [
        line("L²", 0, |row| row.l2),
        line("H¹", 1, |row| row.h1),
        line("L², relative", 2, |row| row.l2_relative),
    ]
    .into_iter()
    .filter(|series| !series.points.is_empty())
    .collect();
    let mut pictures = vec![
        chart(
            "energy",
            "Energy",
            Scale::Linear,
            vec![line("", 0, |row| Some(row.energy))],
        ),
        chart(
            "neurons",
            "Neurons",
            Scale::Linear,
            vec![line("", 2, |row| Some(row.n as f64))],
        ),
    ];
    if !errors.is_empty() {
        let title = "Errors against the exact solution";
        pictures.insert(1, chart("errors", title, Scale::Log(10), errors));
    }
    pictures
}

fn chart(name: &str, title: &str, y: Scale, series: Vec<Series>) -> Named {
    let chart = Chart {
        title: title.to_string(),
        x_label: "t".to_string(),
        x: Scale::Linear,
        y,
        series,
        small: false,
        reach: None,
    };
    Named::chart(name, chart.draw())
}

/// u at the times that were kept, one at a time, with a slider.
pub(super) fn frames(run: &RunData, html: &mut String) {
    if run.frames.len() < 2 {
        return;
    }
    let every = run.frames.len().div_ceil(MOST_FRAMES);
    let last = run.frames.len() - 1;
    let shown = run.frames.iter().enumerate();
    let shown = shown.filter(|(index, _)| index % every == 0 || *index == last);
    let shown: Vec<&(f64, Network)> = shown.map(|(_, frame)| frame).collect();
    let pictures = match run.problem.dimension() {
        1 => curves(run.problem, &shown),
        _ => maps(run.problem, &shown),
    };
    html.push_str("<h2>In time</h2>\n<div id=\"frames\" class=\"plots\">\n");
    for ((time, _), picture) in shown.iter().zip(&pictures) {
        let _ = writeln!(
            html,
            "<div class=\"moment\" data-time=\"{time:.4e}\" hidden>{}</div>",
            picture.element()
        );
    }
    let _ = write!(
        html,
        "</div>\n<p><button id=\"play\" type=\"button\">▶ play</button> \
         <input id=\"moment\" type=\"range\" min=\"0\" max=\"{0}\" value=\"{0}\" style=\"width:min(60%,360px)\" aria-label=\"time\"> \
         <output id=\"now\"></output></p>\n<script>{SCRIPT}</script>\n",
        pictures.len() - 1
    );
}

/// Shows the frame that the slider is at; `play` moves it.
const SCRIPT: &str = "\
(function(){const all=document.querySelectorAll('.moment'),slider=document.getElementById('moment'),\
now=document.getElementById('now'),play=document.getElementById('play');let timer=null;\
function show(){all.forEach(function(f,i){f.hidden=i!=slider.value});now.textContent='t = '+Number(all[slider.value].dataset.time)}\
function stop(){clearInterval(timer);timer=null;play.textContent='▶ play'}\
slider.addEventListener('input',function(){stop();show()});\
play.addEventListener('click',function(){if(timer){stop();return}\
if(+slider.value==+slider.max)slider.value=0;play.textContent='❚❚ pause';\
timer=setInterval(function(){if(+slider.value>=+slider.max){stop();return}slider.value=+slider.value+1;show()},120)});\
show()})();";

fn curves(problem: &Problem, frames: &[&(f64, Network)]) -> Vec<Picture> {
    let charts = frames.iter().map(|(time, network)| {
        let (mut chart, _) = along_an_interval(&problem.at_time(*time), network);
        chart.title = at(*time);
        chart
    });
    let mut charts: Vec<Chart> = charts.collect();
    let heights = charts
        .iter()
        .flat_map(|chart| &chart.series)
        .flat_map(|series| &series.points);
    let reach = range(heights.map(|point| point.1));
    charts.iter_mut().for_each(|chart| chart.reach = reach);
    charts.iter().map(Chart::draw).collect()
}

fn maps(problem: &Problem, frames: &[&(f64, Network)]) -> Vec<Picture> {
    let maps = frames.iter().map(|(time, network)| {
        let (mut map, _) = on_a_grid::<MAP>(&problem.at_time(*time), network);
        map.title = map.title.replace("Solution", &at(*time));
        map
    });
    let mut maps: Vec<_> = maps.collect();
    let reach = range(maps.iter().flat_map(|map| {
        let (low, high) = map.own_range();
        [low, high]
    }));
    maps.iter_mut().for_each(|map| map.reach = reach);
    maps.iter().map(|map| map.draw()).collect()
}

fn at(time: f64) -> String {
    // To five digits: times are multiples of a step, up to rounding.
    let rounded: f64 = format!("{time:.4e}").parse().unwrap_or(time);
    format!("u at t = {rounded}")
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.filter(|value| value.is_finite());
    finite.fold(None, |range, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}
