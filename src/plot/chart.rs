//! Lines and dots over two axes.

use super::axis::{Axis, Scale};
use super::{COLORS, Picture, escaped};
use std::fmt::Write;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A line.
    Line,
    /// A broken line.
    Dashed,
    /// A line with a dot at every point.
    LineWithDots,
    /// Dots only.
    Dots,
    /// A thin dotted line, for comparison.
    Slope,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// In which of the colours.
    pub color: usize,
    /// (x, y).
    pub points: Vec<(f64, f64)>,
}

/// Series over two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What is shown.
    pub title: String,
    /// Under the horizontal axis.
    pub x_label: String,
    /// The horizontal scale.
    pub x: Scale,
    /// The vertical scale.
    pub y: Scale,
    /// What is drawn, the first at the bottom.
    pub series: Vec<Series>,
    /// A small one, for many side by side.
    pub small: bool,
    /// Values that the vertical axis reaches, whatever is drawn: for charts that are compared.
    pub reach: Option<(f64, f64)>,
}

/// Pixels around the frame.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

const LEGEND_LINE: f64 = 17.0;
/// A character of the legend is about this wide.
const CHARACTER: f64 = 6.6;

impl Chart {
    /// Draws it.
    pub fn draw(&self) -> Picture {
        let (width, plot_height) = if self.small {
            (250.0, 120.0)
        } else {
            (480.0, 280.0)
        };
        let legend = self.legend(width - 20.0);
        let frame = Frame {
            left: 62.0,
            right: width - 14.0,
            top: 28.0,
            bottom: 28.0 + plot_height,
        };
        let height = frame.bottom + 38.0 + LEGEND_LINE * legend.len() as f64;
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = Axis::new(self.x, points().map(|p| p.0), frame.left, frame.right);
        let reach = self.reach.into_iter().flat_map(|(low, high)| [low, high]);
        let heights = points().map(|p| p.1).chain(reach);
        let y = Axis::new(self.y, heights, frame.bottom, frame.top).widened();
        let mut body = format!(
            "<text class=\"title\" x=\"{}\" y=\"17\">{}</text>\n",
            frame.left,
            escaped(&self.title)
        );
        grid(
            &frame,
            &x,
            &y,
            if self.small { (4, 4) } else { (8, 7) },
            &mut body,
        );
        let _ = writeln!(
            body,
            "<text text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>",
            0.5 * (frame.left + frame.right),
            frame.bottom + 32.0,
            escaped(&self.x_label)
        );
        for series in &self.series {
            series.draw(&x, &y, &mut body);
        }
        for (line, entries) in legend.iter().enumerate() {
            let y = frame.bottom + 50.0 + LEGEND_LINE * line as f64;
            entries
                .iter()
                .for_each(|(series, x)| series.entry(*x, y, &mut body));
        }
        Picture {
            title: self.title.clone(),
            width,
            height,
            body,
        }
    }

    /// The named series in lines that fit the width, each with its place.
    fn legend(&self, width: f64) -> Vec<Vec<(&Series, f64)>> {
        let mut lines: Vec<Vec<(&Series, f64)>> = Vec::new();
        let mut end = f64::INFINITY;
        for series in self.series.iter().filter(|series| !series.name.is_empty()) {
            let needed = 34.0 + CHARACTER * series.name.chars().count() as f64;
            if end + needed > width {
                lines.push(Vec::new());
                end = 16.0;
            }
            if let Some(line) = lines.last_mut() {
                line.push((series, end));
            }
            end += needed + 12.0;
        }
        lines
    }
}

/// The frame with its grid lines and labels.
fn grid(frame: &Frame, x: &Axis, y: &Axis, (x_count, y_count): (usize, usize), body: &mut String) {
    let Frame {
        left,
        right,
        top,
        bottom,
    } = frame;
    for (value, label) in x.ticks(x_count) {
        if let Some(place) = x.place(value) {
            let _ = writeln!(
                body,
                "<path class=\"grid\" d=\"M{place:.1} {top}V{bottom}\"/><text text-anchor=\"middle\" x=\"{place:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 15.0,
                label_spans(&label)
            );
        }
    }
    for (value, label) in y.ticks(y_count) {
        if let Some(place) = y.place(value) {
            let _ = writeln!(
                body,
                "<path class=\"grid\" d=\"M{left} {place:.1}H{right}\"/><text text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
                left - 5.0,
                place + 4.0,
                label_spans(&label)
            );
        }
    }
    let _ = writeln!(
        body,
        "<rect class=\"frame\" x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\"/>",
        right - left,
        bottom - top
    );
}

/// A label with its power raised.
pub(super) fn label_spans(label: &str) -> String {
    let label = escaped(label).replace('-', "−");
    match label.split_once('^') {
        Some((base, power)) => format!("{base}<tspan dy=\"-4\" font-size=\"9\">{power}</tspan>"),
        None => label,
    }
}

impl Series {
    fn color(&self) -> usize {
        self.color % COLORS
    }

    fn draw(&self, x: &Axis, y: &Axis, body: &mut String) {
        let places = self
            .points
            .iter()
            .map(|&(px, py)| Some((x.place(px)?, y.place(py)?)));
        let places: Vec<Option<(f64, f64)>> = places.collect();
        if let Some(class) = self.line_class() {
            let mut path = String::new();
            let mut pen = 'M';
            for place in &places {
                // A gap where there is nothing to show.
                let Some((px, py)) = place else {
                    pen = 'M';
                    continue;
                };
                let _ = write!(path, "{pen}{px:.1} {py:.1}");
                pen = 'L';
            }
            let _ = writeln!(body, "<path class=\"{class} s{}\" d=\"{path}\"/>", self.color());
        }
        if matches!(self.mark, Mark::Dots | Mark::LineWithDots) {
            let radius = if self.mark == Mark::Dots { 2.2 } else { 3.0 };
            for (px, py) in places.iter().flatten() {
                let _ = writeln!(
                    body,
                    "<circle class=\"f{}\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"{radius}\"/>",
                    self.color()
                );
            }
        }
    }

    fn line_class(&self) -> Option<&'static str> {
        match self.mark {
            Mark::Line | Mark::LineWithDots => Some("line"),
            Mark::Dashed => Some("line dashed"),
            Mark::Slope => Some("slope"),
            Mark::Dots => None,
        }
    }

    /// Its line in the legend.
    fn entry(&self, x: f64, y: f64, body: &mut String) {
        if let Some(class) = self.line_class() {
            let _ = write!(
                body,
                "<path class=\"{class} s{}\" d=\"M{x:.1} {:.1}h24\"/>",
                self.color(),
                y - 4.0
            );
        }
        if matches!(self.mark, Mark::Dots | Mark::LineWithDots) {
            let _ = write!(
                body,
                "<circle class=\"f{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>",
                self.color(),
                x + 12.0,
                y - 4.0
            );
        }
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            x + 30.0,
            escaped(&self.name)
        );
    }
}
