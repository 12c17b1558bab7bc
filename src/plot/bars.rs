//! Amounts side by side.

use super::{Picture, escaped};
use std::fmt::Write;

/// A horizontal bar for each amount, with its label and its value in words.
pub fn bars(title: &str, amounts: &[(&str, f64, String)]) -> Picture {
    const WIDTH: f64 = 480.0;
    const LEFT: f64 = 104.0;
    const RIGHT: f64 = 90.0;
    const LINE: f64 = 24.0;
    let largest = amounts.iter().map(|(_, amount, _)| *amount).fold(0.0, f64::max);
    let mut body = format!(
        "<text class=\"title\" x=\"10\" y=\"17\">{}</text>\n",
        escaped(title)
    );
    for (index, (label, amount, words)) in amounts.iter().enumerate() {
        let y = 30.0 + LINE * index as f64;
        let part = if largest > 0.0 { amount / largest } else { 0.0 };
        let length = (part * (WIDTH - LEFT - RIGHT)).max(1.0);
        let _ = writeln!(
            body,
            "<text text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text><rect class=\"f0\" x=\"{LEFT}\" y=\"{y}\" width=\"{length:.1}\" height=\"15\" rx=\"2\"/><text x=\"{:.1}\" y=\"{}\">{}</text>",
            LEFT - 8.0,
            y + 12.0,
            escaped(label),
            LEFT + length + 6.0,
            y + 12.0,
            escaped(words)
        );
    }
    Picture {
        title: title.to_string(),
        width: WIDTH,
        height: 36.0 + LINE * amounts.len() as f64,
        body,
    }
}
