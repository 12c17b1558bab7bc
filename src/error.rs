//! What can go wrong while solving.

/// What a GPU, or its driver, refused to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DeviceError {
    /// Nothing matches.
    #[error("no GPU adapter{}; there are: {}", .wanted.as_ref().map_or(String::new(), |w| format!(" named like `{w}`")), if .available.is_empty() { "none (is a Vulkan driver installed?)".to_string() } else { .available.join(", ") })]
    NoAdapter {
        /// The name asked for.
        wanted: Option<String>,
        /// The names there are.
        available: Vec<String>,
    },
    /// The adapter gives no device.
    #[error("{adapter}: no device: {reason}")]
    NoDevice {
        /// Its name.
        adapter: String,
        /// What it said.
        reason: String,
    },
    /// Too little memory on the device.
    #[error("the device is out of memory: {0}")]
    OutOfMemory(String),
    /// The device is gone, or hangs.
    #[error("the device was lost: {0}")]
    Lost(String),
    /// A fault of ours, or a feature that is not there.
    #[error("the device refused a command: {0}")]
    Refused(String),
}

/// A solve that could not go on. The numbers say where and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SolveError {
    /// What acts, or is held, has a factor in t that is not a finite number at some time.
    #[error("{what} is {value} at t = {time}")]
    NotFiniteInTime {
        /// Which formula.
        what: String,
        /// The value of the factor.
        value: f64,
        /// When.
        time: f64,
    },
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
    Device(#[from] DeviceError),
    /// The sums of a pass over the points cannot be saved.
    #[error("the sums over the points cannot be saved: {0}; what was written before is kept")]
    Tables(String),
    /// A rule that the domain does not allow.
    #[error(transparent)]
    Points(#[from] crate::points::PointsError),
    /// Another process of the run failed.
    #[error("{message}")]
    Elsewhere {
        /// What it said.
        message: String,
        /// Whether that is [the user's to mend](Self::is_bad_input).
        bad_input: bool,
    },
}

impl SolveError {
    /// Whether another problem file or other flags would help: a GPU that is not there is a flag that cannot be followed.
    pub fn is_bad_input(&self) -> bool {
        match self {
            SolveError::Device(_) | SolveError::TooLarge { .. } | SolveError::NotFiniteInTime { .. } => true,
            SolveError::Elsewhere { bad_input, .. } => *bad_input,
            _ => false,
        }
    }
}
