//! Values over a rectangle as colours.

use super::axis::{Axis, Scale};
use super::chart::label_spans;
use super::{Picture, escaped};
use base64::Engine;
use std::fmt::Write;

/// Which colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// From dark to light.
    Sequential,
    /// Two colours on either side of zero.
    Diverging,
}

/// Values on a grid over a rectangle.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    /// What is shown.
    pub title: String,
    /// The names of the two coordinates.
    pub labels: [String; 2],
    /// The lower ends of the two coordinates.
    pub lower: [f64; 2],
    /// The upper ends.
    pub upper: [f64; 2],
    /// How many values in each coordinate.
    pub counts: [usize; 2],
    /// The values, the first coordinate running fastest; NaN is left blank.
    pub values: Vec<f64>,
    /// The colours.
    pub palette: Palette,
    /// Line segments drawn over it: the boundary of the domain.
    pub outline: Vec<[[f64; 2]; 2]>,
    /// The values at both ends of the colours, for maps that are compared; else those of this one.
    pub reach: Option<(f64, f64)>,
}

const WIDTH: f64 = 480.0;
/// The longer side of the map.
const SIDE: f64 = 340.0;
const LEFT: f64 = 50.0;
const TOP: f64 = 28.0;

impl HeatMap {
    /// Draws it.
    pub fn draw(&self) -> Picture {
        let extent = [0, 1].map(|i| self.upper[i] - self.lower[i]);
        let longer = extent[0].max(extent[1]);
        // A sliver is drawn wider than it is.
        let [width, height] = extent.map(|length| SIDE * (length / longer).max(0.25));
        let (low, high) = self.range();
        let mut body = format!(
            "<text class=\"title\" x=\"{LEFT}\" y=\"17\">{}</text>\n",
            escaped(&self.title)
        );
        let _ = writeln!(
            body,
            "<image x=\"{LEFT}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height:.1}\" preserveAspectRatio=\"none\" href=\"{}\"/>\
             <rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
            self.data_address(low, high)
        );
        let x = Axis::new(
            Scale::Linear,
            [self.lower[0], self.upper[0]].into_iter(),
            LEFT,
            LEFT + width,
        );
        let y = Axis::new(
            Scale::Linear,
            [self.lower[1], self.upper[1]].into_iter(),
            TOP + height,
            TOP,
        );
        if !self.outline.is_empty() {
            let mut path = String::new();
            for [[ax, ay], [bx, by]] in &self.outline {
                if let (Some(ax), Some(ay), Some(bx), Some(by)) =
                    (x.place(*ax), y.place(*ay), x.place(*bx), y.place(*by))
                {
                    let _ = write!(path, "M{ax:.1} {ay:.1}L{bx:.1} {by:.1}");
                }
            }
            let _ = writeln!(
                body,
                "<path class=\"outline\" d=\"{path}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"0.8\"/>"
            );
        }
        for (value, label) in x.ticks(5) {
            let place = x.place(value).unwrap_or(LEFT);
            text(place, TOP + height + 15.0, "middle", &label, &mut body);
        }
        for (value, label) in y.ticks(5) {
            let place = y.place(value).unwrap_or(TOP);
            text(LEFT - 5.0, place + 4.0, "end", &label, &mut body);
        }
        text(
            LEFT + 0.5 * width,
            TOP + height + 31.0,
            "middle",
            &self.labels[0],
            &mut body,
        );
        text(14.0, TOP + 0.5 * height, "middle", &self.labels[1], &mut body);
        self.color_bar(LEFT + width + 14.0, height, (low, high), &mut body);
        Picture {
            title: self.title.clone(),
            width: WIDTH,
            height: TOP + height + 42.0,
            body,
        }
    }

    /// The smallest and largest value; even about zero where the colours are.
    fn range(&self) -> (f64, f64) {
        if let Some(reach) = self.reach {
            return reach;
        }
        self.own_range()
    }

    /// The same of its own values.
    pub fn own_range(&self) -> (f64, f64) {
        let finite = self.values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match self.palette {
            _ if low > high => (0.0, 1.0),
            Palette::Sequential if low == high => (low - 0.5, high + 0.5),
            Palette::Sequential => (low, high),
            Palette::Diverging => {
                let reach = low.abs().max(high.abs()).max(f64::MIN_POSITIVE);
                (-reach, reach)
            }
        }
    }

    fn color(&self, part: f64) -> colorous::Color {
        match self.palette {
            Palette::Sequential => colorous::VIRIDIS.eval_continuous(part),
            Palette::Diverging => colorous::RED_BLUE.eval_continuous(1.0 - part),
        }
    }

    /// The colours as a PNG image, the upper row first; blank is transparent.
    pub fn png(&self) -> Vec<u8> {
        let (low, high) = self.range();
        self.png_between(low, high)
    }

    fn png_between(&self, low: f64, high: f64) -> Vec<u8> {
        let [columns, rows] = self.counts;
        let mut pixels = Vec::with_capacity(4 * columns * rows);
        for row in self.values.chunks(columns).rev() {
            for value in row {
                match value.is_finite() {
                    true => {
                        let color = self.color((value - low) / (high - low));
                        pixels.extend([color.r, color.g, color.b, 255]);
                    }
                    false => pixels.extend([0; 4]),
                }
            }
        }
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, columns as u32, rows as u32);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        // Writing to memory fails only for an empty image, which is then empty.
        if let Ok(mut writer) = encoder.write_header() {
            let _ = writer.write_image_data(&pixels);
        }
        file
    }

    fn data_address(&self, low: f64, high: f64) -> String {
        let text = base64::engine::general_purpose::STANDARD.encode(self.png_between(low, high));
        format!("data:image/png;base64,{text}")
    }

    /// What the colours mean.
    fn color_bar(&self, left: f64, height: f64, (low, high): (f64, f64), body: &mut String) {
        const STEPS: usize = 48;
        let step = height / STEPS as f64;
        for index in 0..STEPS {
            let color = self.color((index as f64 + 0.5) / STEPS as f64);
            let _ = write!(
                body,
                "<rect x=\"{left:.1}\" y=\"{:.2}\" width=\"14\" height=\"{:.2}\" fill=\"#{color:x}\"/>",
                TOP + height - step * (index + 1) as f64,
                step + 0.3
            );
        }
        let axis = Axis::new(Scale::Linear, [low, high].into_iter(), TOP + height, TOP);
        for (value, label) in axis.ticks(5) {
            let place = axis.place(value).unwrap_or(TOP);
            text(left + 19.0, place + 4.0, "start", &label, body);
        }
    }
}

fn text(x: f64, y: f64, anchor: &str, label: &str, body: &mut String) {
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        label_spans(label)
    );
}
