//! Plots as SVG: line charts, heat maps and bars that follow the reader's light or dark theme.
//!
//! A plot is a [`Picture`]: drawn once, it goes into a page as it is, or into a file of its own.

mod axis;
mod bars;
mod chart;
mod heat;

pub use axis::Scale;
pub use bars::bars;
pub use chart::{Chart, Mark, Series};
pub use heat::{HeatMap, Palette};

/// Colours of every picture, by class; in dark surroundings others.
pub const STYLE: &str = "\
.plot{--ink:#1f2328;--faint:#d4d8dd;--paper:#fff;--s0:#1f6feb;--s1:#c2410c;--s2:#15803d;--s3:#9333ea;--s4:#b45309;--s5:#0e7490;\
font:12px system-ui,sans-serif;background:var(--paper)}\
@media(prefers-color-scheme:dark){.plot{--ink:#e6e6e6;--faint:#3d4450;--paper:#15181d;--s0:#6cb0ff;--s1:#ff9a5c;--s2:#5fd38a;--s3:#c99bff;--s4:#ffc46b;--s5:#5fd0e0}}\
.plot text{fill:var(--ink)}.plot .title{font-weight:600;font-size:13px}.plot .grid{stroke:var(--faint);stroke-width:1}\
.plot .frame{fill:none;stroke:var(--ink);stroke-width:1}\
.plot .line{fill:none;stroke-width:1.8}.plot .dashed{stroke-dasharray:6 4}.plot .slope{fill:none;stroke-width:1.2;stroke-dasharray:2 3}\
.plot .s0{stroke:var(--s0)}.plot .s1{stroke:var(--s1)}.plot .s2{stroke:var(--s2)}.plot .s3{stroke:var(--s3)}.plot .s4{stroke:var(--s4)}.plot .s5{stroke:var(--s5)}\
.plot .f0{fill:var(--s0)}.plot .f1{fill:var(--s1)}.plot .f2{fill:var(--s2)}.plot .f3{fill:var(--s3)}.plot .f4{fill:var(--s4)}.plot .f5{fill:var(--s5)}";

/// How many colours there are.
const COLORS: usize = 6;

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// What it shows, for those who cannot see it.
    pub title: String,
    width: f64,
    height: f64,
    body: String,
}

impl Picture {
    /// The picture as an element of a page that has [`STYLE`] in its head.
    pub fn element(&self) -> String {
        self.svg("")
    }

    /// The picture as a file of its own.
    pub fn file(&self) -> String {
        self.svg(&format!("<style>{STYLE}</style>"))
    }

    fn svg(&self, style: &str) -> String {
        let Self {
            title,
            width,
            height,
            body,
        } = self;
        let title = escaped(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\
             <title>{title}</title>{style}\n{body}</svg>\n"
        )
    }
}

/// Text with what means something in XML replaced.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
