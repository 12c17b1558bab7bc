//! Networks on disk, in the safetensors format.

use crate::activation::Activation;
use crate::atomic_file::write_atomically;
use crate::network::{Network, Neuron};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::HashMap;
use std::path::Path;

/// A network file that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum NetworkFileError {
    /// The operating system said no.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: String,
        /// What it said.
        error: std::io::Error,
    },
    /// Not such a file, or a damaged one.
    #[error("{path}: not a network: {reason}")]
    Format {
        /// Which file.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

/// Saves omega (n×d), bias (n) and coefficient (n), with the activation and `notes` beside them.
pub fn save(path: &Path, network: &Network, notes: &[(&str, String)]) -> Result<(), NetworkFileError> {
    save_with(path, network, &[], notes)
}

/// As [`save`], with more columns of one number per neuron.
pub fn save_with(
    path: &Path,
    network: &Network,
    more: &[(&str, &[f64])],
    notes: &[(&str, String)],
) -> Result<(), NetworkFileError> {
    write(path, bytes_with(network, more, notes))
}

/// ω and b of all neurons, one after the other.
fn inner_weights(network: &Network) -> (Vec<f64>, Vec<f64>) {
    let neurons = network.neurons.iter();
    let omega = neurons.clone().flat_map(|neuron| neuron.omega.iter().copied());
    (omega.collect(), neurons.map(|neuron| neuron.bias).collect())
}

/// The bytes of such a file; why there are none, if there are none.
pub fn bytes_with(
    network: &Network,
    more: &[(&str, &[f64])],
    notes: &[(&str, String)],
) -> Result<Vec<u8>, String> {
    let (n, d) = (network.len(), network.dimension);
    let (omega, bias) = inner_weights(network);
    let mut columns: Vec<NamedArray> = vec![
        ("omega", vec![n, d], &omega),
        ("bias", vec![n], &bias),
        ("coefficient", vec![n], &network.coefficients),
    ];
    columns.extend(
        more.iter()
            .map(|&(name, values)| (name, vec![values.len()], values)),
    );
    column_bytes(network, &columns, notes)
}

/// A named array: its shape and its numbers.
pub type NamedArray<'a> = (&'a str, Vec<usize>, &'a [f64]);

/// Writes the bytes of a network, if there are any.
fn write(path: &Path, bytes: Result<Vec<u8>, String>) -> Result<(), NetworkFileError> {
    let bytes = bytes.map_err(|reason| NetworkFileError::Format {
        path: path.display().to_string(),
        reason,
    })?;
    write_atomically(path, &bytes).map_err(|error| NetworkFileError::Io {
        path: path.display().to_string(),
        error,
    })
}

/// Arrays, with the activation and notes beside them.
fn column_bytes(
    network: &Network,
    columns: &[NamedArray],
    notes: &[(&str, String)],
) -> Result<Vec<u8>, String> {
    let mut tensors = Vec::new();
    for (name, shape, values) in columns {
        let bytes = bytemuck::cast_slice::<f64, u8>(values);
        let view = TensorView::new(Dtype::F64, shape.clone(), bytes).map_err(|error| error.to_string())?;
        tensors.push((name.to_string(), view));
    }
    let mut metadata: HashMap<String, String> = notes
        .iter()
        .map(|(key, value)| (key.to_string(), value.clone()))
        .collect();
    metadata.insert("activation".to_string(), network.activation.to_string());
    let bytes = safetensors::serialize(tensors, Some(metadata)).map_err(|error| error.to_string())?;
    with_sorted_header(&bytes).ok_or_else(|| "the header is damaged".to_string())
}

/// The same file with the keys of its header in order: the same network gives the same bytes.
fn with_sorted_header(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let (header, data) = rest.split_at_checked(u64::from_le_bytes(*length) as usize)?;
    let sorted: serde_json::Value = serde_json::from_slice(header).ok()?;
    let mut header = sorted.to_string().into_bytes();
    // Spaces may follow; the data start at a multiple of eight.
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend(data);
    Some(file)
}

/// Saves a network at several times: omega (n×d), bias (n), coefficient (frames×n) and time (frames). Neurons that came later have
/// coefficient 0.
pub fn save_frames(
    path: &Path,
    last: &Network,
    frames: &[(f64, &[f64])],
    notes: &[(&str, String)],
) -> Result<(), NetworkFileError> {
    let (n, d) = (last.len(), last.dimension);
    let (omega, bias) = inner_weights(last);
    let times: Vec<f64> = frames.iter().map(|(time, _)| *time).collect();
    let mut coefficients = Vec::new();
    for (_, frame) in frames {
        coefficients.extend_from_slice(frame);
        coefficients.resize(coefficients.len() + n - frame.len(), 0.0);
    }
    let columns: Vec<NamedArray> = vec![
        ("omega", vec![n, d], &omega),
        ("bias", vec![n], &bias),
        ("coefficient", vec![frames.len(), n], &coefficients),
        ("time", vec![frames.len()], &times),
    ];
    write(path, column_bytes(last, &columns, notes))
}

/// Loads what [`save_frames`] saved: a network for each time.
pub fn load_frames(path: &Path) -> Result<Vec<(f64, Network)>, NetworkFileError> {
    let bytes = std::fs::read(path).map_err(|error| NetworkFileError::Io {
        path: path.display().to_string(),
        error,
    })?;
    decode_frames(&bytes).map_err(|reason| NetworkFileError::Format {
        path: path.display().to_string(),
        reason,
    })
}

fn decode_frames(bytes: &[u8]) -> Result<Vec<(f64, Network)>, String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let notes = header.metadata().clone().unwrap_or_default();
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let (shape, omega) = numbers(&tensors, "omega")?;
    let ((_, bias), (_, coefficients)) = (numbers(&tensors, "bias")?, numbers(&tensors, "coefficient")?);
    let (_, times) = numbers(&tensors, "time")?;
    let [n, d] = shape[..] else {
        return Err("`omega` is not a matrix".to_string());
    };
    if d == 0 || bias.len() != n || coefficients.len() != n * times.len() {
        return Err("omega, bias, coefficient and time do not fit together".to_string());
    }
    let activation = notes
        .get("activation")
        .and_then(|name| Activation::from_name(name))
        .ok_or("the activation is not named")?;
    let neurons: Vec<Neuron> = omega
        .chunks(d)
        .zip(bias)
        .map(|(omega, bias)| Neuron {
            omega: omega.to_vec(),
            bias,
        })
        .collect();
    let of = |(frame, time): (usize, f64)| {
        let network = Network {
            activation,
            dimension: d,
            neurons: neurons.clone(),
            coefficients: coefficients[frame * n..][..n].to_vec(),
        };
        (time, network)
    };
    Ok(times.into_iter().enumerate().map(of).collect())
}

/// The shape and the numbers of an array.
fn numbers(tensors: &SafeTensors, name: &str) -> Result<(Vec<usize>, Vec<f64>), String> {
    let view = tensors.tensor(name).map_err(|error| error.to_string())?;
    if view.dtype() != Dtype::F64 {
        return Err(format!("`{name}` does not hold 64-bit numbers"));
    }
    let values = view
        .data()
        .chunks_exact(8)
        .map(|chunk| f64::from_le_bytes(chunk.try_into().unwrap_or_default()))
        .collect::<Vec<f64>>();
    if values.iter().any(|value| !value.is_finite()) {
        return Err(format!(
            "damaged: `{name}` holds something that is not a finite number"
        ));
    }
    Ok((view.shape().to_vec(), values))
}

/// Loads a network and what was noted beside it.
pub fn load(path: &Path) -> Result<(Network, HashMap<String, String>), NetworkFileError> {
    load_with(path, &[]).map(|(network, _, notes)| (network, notes))
}

/// A network, more columns of one number per neuron, and the notes.
pub type Loaded = (Network, Vec<Vec<f64>>, HashMap<String, String>);

/// Loads what [`save_with`] saved, with the columns of these names.
pub fn load_with(path: &Path, more: &[&str]) -> Result<Loaded, NetworkFileError> {
    let bytes = std::fs::read(path).map_err(|error| NetworkFileError::Io {
        path: path.display().to_string(),
        error,
    })?;
    load_bytes(&bytes, path, more)
}

/// The same from the bytes of a file that was at `path`.
pub fn load_bytes(bytes: &[u8], path: &Path, more: &[&str]) -> Result<Loaded, NetworkFileError> {
    decode(bytes, more).map_err(|reason| NetworkFileError::Format {
        path: path.display().to_string(),
        reason,
    })
}

fn decode(bytes: &[u8], more: &[&str]) -> Result<Loaded, String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let notes = header.metadata().clone().unwrap_or_default();
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let column = |name: &str| numbers(&tensors, name);
    let (shape, omega) = column("omega")?;
    let (_, bias) = column("bias")?;
    let (_, coefficients) = column("coefficient")?;
    let [n, d] = shape[..] else {
        return Err("`omega` is not a matrix".to_string());
    };
    let more = more.iter().map(|name| Ok(column(name)?.1));
    let more: Vec<Vec<f64>> = more.collect::<Result<_, String>>()?;
    let fits = |column: &Vec<f64>| column.is_empty() || column.len() == n;
    if d == 0 || bias.len() != n || coefficients.len() != n || !more.iter().all(fits) {
        return Err("omega, bias and coefficient do not fit together".to_string());
    }
    let activation = notes
        .get("activation")
        .and_then(|name| Activation::from_name(name))
        .ok_or("the activation is not named")?;
    let neurons = omega
        .chunks(d)
        .zip(bias)
        .map(|(omega, bias)| Neuron {
            omega: omega.to_vec(),
            bias,
        })
        .collect();
    Ok((
        Network {
            activation,
            dimension: d,
            neurons,
            coefficients,
        },
        more,
        notes,
    ))
}
