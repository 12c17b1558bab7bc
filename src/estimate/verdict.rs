//! x
/// y
pub struct Verdict;
