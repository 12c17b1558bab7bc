//! What can go wrong while solving.

/// A solve that could not go on. The numbers say where and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SolveError {
    /// A coefficient, source or exact solution is not a finite number somewhere.
    #[error("{what} is {value} at x = {point:?}")]
    NotFinite {
        /// Which formula.
        what: String,
        /// Its value.
        value: f64,
        /// Where.
        point: Vec<f64>,
    },
    /// A coefficient that must not be negative is.
    #[error("{what} is {value}, below zero, at x = {point:?}: the energy is not convex there")]
    NotConvex {
        /// Which formula.
        what: String,
        /// Its value.
        value: f64,
        /// Where.
        point: Vec<f64>,
    },
    /// The scores are not finite: the network has left the range of numbers.
    #[error("after {neurons} neurons the gradient of the loss is not finite")]
    Breakdown {
        /// How many neurons there were.
        neurons: usize,
    },
    /// Something this combination of settings has no code for.
    #[error("not provided: {0}")]
    Unsupported(&'static str),
    /// More memory than there is.
    #[error("this run needs about {:.1} GiB of memory and {:.1} GiB are free: use fewer neurons, candidates or offsets, or a smaller `cache_mib`", *needed as f64 / (1u64 << 30) as f64, *available as f64 / (1u64 << 30) as f64)]
    TooLarge {
        /// Bytes it takes, about.
        needed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// The observer asked to stop before there was a result.
    #[error("interrupted")]
    Interrupted,
    /// No GPU, though one was asked for.
    #[error(transparent)]
    Device(#[from] crate::gpu::DeviceError),
    /// The sums of a pass over the points cannot be saved.
    #[error("the sums over the points cannot be saved: {0}; what was written before is kept")]
    Tables(String),
    /// A rule that the domain does not allow.
    #[error(transparent)]
    Points(#[from] crate::points::PointsError),
}
