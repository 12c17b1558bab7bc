//! Meshes in the formats 2.2 and 4.1 of Gmsh, ASCII and binary.
//!
//! Written here because the readers there are know one of the two formats, and none the names of groups. Nothing in a
//! file is believed: every count is followed by that many items or an error, and no memory is set aside for a
//! number before its items were read.

use super::DomainError;
use super::element::{Element, Place};
use super::mesh::RawMesh;
use super::msh_bytes::{Bytes, Read};
use std::collections::HashMap;

/// What a file has, before cells and facets are told apart.
#[derive(Default)]
struct Contents {
    /// Node tags and places.
    nodes: HashMap<u64, Place>,
    /// Dimension, group, and nodes of each element.
    elements: Vec<Listed>,
    /// Names of groups, by dimension and tag.
    names: HashMap<(i64, i64), String>,
    /// The groups of each entity, by dimension and tag (format 4.1).
    entities: HashMap<(i64, i64), Vec<i64>>,
}

struct Listed {
    dimension: usize,
    groups: Vec<i64>,
    nodes: Vec<u64>,
}

/// The number of dimensions and nodes of a type of element.
fn shape(kind: i64) -> Result<(usize, usize), DomainError> {
    let second_order = "the elements are of second order: only straight ones are read";
    Ok(match kind {
        15 => (0, 1),
        1 => (1, 2),
        2 => (2, 3),
        3 => (2, 4),
        4 => (3, 4),
        5 => (3, 8),
        6 | 7 => {
            return Err(
                DomainError::new("has prisms or pyramids: tetrahedra and hexahedra are read")
                    .help("mesh with tetrahedra only, or with hexahedra only"),
            );
        }
        8..=14 | 16..=19 => {
            return Err(DomainError::new(second_order).help("mesh with `-order 1`, Mesh.ElementOrder = 1"));
        }
        other => {
            return Err(
                DomainError::new(format!("has elements of type {other}, which are not read"))
                    .help("lines, triangles, quadrilaterals, tetrahedra and hexahedra of order 1 are"),
            );
        }
    })
}

/// Reads a mesh of so many dimensions.
pub fn read(bytes: &[u8], dimension: usize) -> Result<RawMesh, DomainError> {
    let mut file = Bytes::new(bytes);
    let contents = sections(&mut file).map_err(|error| error.line_or(file.line()))?;
    contents.mesh(dimension)
}

fn sections(file: &mut Bytes) -> Read<Contents> {
    let mut contents = Contents::default();
    if file.word()? != "$MeshFormat" {
        return Err(DomainError::new(
            "is not a mesh of Gmsh: it does not begin with $MeshFormat",
        ));
    }
    let version = file.word()?.to_string();
    let is_new = match version.as_str() {
        "2.2" | "2" | "2.1" => false,
        "4.1" => true,
        _ => {
            return Err(
                DomainError::new(format!("has the format {version}; 2.2 and 4.1 are read"))
                    .help("save it with `gmsh … -format msh41`"),
            );
        }
    };
    let binary = match file.word()? {
        "0" => false,
        "1" => true,
        other => return Err(DomainError::new(format!("has the file type {other}, not 0 or 1"))),
    };
    if file.word()? != "8" {
        return Err(DomainError::new("has numbers of another size than 8 bytes"));
    }
    if binary {
        file.binary_numbers()?;
    }
    file.end_of("MeshFormat")?;
    let (mut has_nodes, mut has_elements) = (false, false);
    while let Some(section) = file.next_section()? {
        match section.as_str() {
            "PhysicalNames" => names(file, &mut contents)?,
            "Entities" if is_new => entities(file, &mut contents)?,
            "PartitionedEntities" => {
                return Err(DomainError::new("is partitioned").help("save it without partitions"));
            }
            "Nodes" => {
                match is_new {
                    true => nodes_4(file, &mut contents)?,
                    false => nodes_2(file, &mut contents)?,
                }
                has_nodes = true;
            }
            "Elements" => {
                match is_new {
                    true => elements_4(file, &mut contents)?,
                    false => elements_2(file, &mut contents)?,
                }
                has_elements = true;
            }
            other => {
                file.skip_section(other)?;
                continue;
            }
        }
        file.end_of(&section)?;
    }
    match (has_nodes, has_elements) {
        (true, true) => Ok(contents),
        (false, _) => Err(DomainError::new("has no $Nodes")),
        _ => Err(DomainError::new("has no $Elements")),
    }
}

/// Always text, also in binary files.
fn names(file: &mut Bytes, contents: &mut Contents) -> Read<()> {
    let count: usize = file.text_number()?;
    for _ in 0..count {
        let (dimension, tag) = (file.text_number()?, file.text_number()?);
        let name = file.quoted()?;
        contents.names.insert((dimension, tag), name);
    }
    Ok(())
}

fn entities(file: &mut Bytes, contents: &mut Contents) -> Read<()> {
    let counts = [file.size()?, file.size()?, file.size()?, file.size()?];
    for (dimension, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            let tag = file.int()?;
            let numbers = if dimension == 0 { 3 } else { 6 };
            for _ in 0..numbers {
                file.real()?;
            }
            let groups = (0..file.size()?)
                .map(|_| file.int())
                .collect::<Read<Vec<i64>>>()?;
            if dimension > 0 {
                for _ in 0..file.size()? {
                    file.int()?;
                }
            }
            contents.entities.insert((dimension as i64, tag), groups);
        }
    }
    Ok(())
}

fn add_node(contents: &mut Contents, tag: u64, place: Place) -> Read<()> {
    if place.iter().any(|x| !x.is_finite()) {
        return Err(DomainError::new(format!(
            "node {tag} is at {place:?}, which is no place"
        )));
    }
    match contents.nodes.insert(tag, place) {
        None => Ok(()),
        Some(_) => Err(DomainError::new(format!("has node {tag} twice"))),
    }
}

fn place(file: &mut Bytes) -> Read<Place> {
    Ok([file.real()?, file.real()?, file.real()?])
}

fn nodes_2(file: &mut Bytes, contents: &mut Contents) -> Read<()> {
    let count: usize = file.text_number()?;
    file.begin_data();
    for _ in 0..count {
        let tag = file.int()?;
        let place = place(file)?;
        add_node(contents, tag as u64, place)?;
    }
    Ok(())
}

fn nodes_4(file: &mut Bytes, contents: &mut Contents) -> Read<()> {
    let blocks = file.size()?;
    for _ in 0..3 {
        file.size()?;
    }
    for _ in 0..blocks {
        let dimension = file.int()?;
        file.int()?;
        let parametric = file.int()? != 0;
        let count = file.size()?;
        let mut tags = Vec::new();
        for _ in 0..count {
            tags.push(file.size()? as u64);
        }
        for tag in tags {
            let place = place(file)?;
            add_node(contents, tag, place)?;
            if parametric {
                for _ in 0..dimension.clamp(0, 3) {
                    file.real()?;
                }
            }
        }
    }
    Ok(())
}

fn elements_2(file: &mut Bytes, contents: &mut Contents) -> Read<()> {
    let count: usize = file.text_number()?;
    file.begin_data();
    let mut read = 0;
    while read < count {
        // In text every element has its own type; in binary a header serves several.
        let binary = file.is_binary();
        if !binary {
            file.int()?;
        }
        let (dimension, corners) = shape(file.int()?)?;
        let here = if binary { file.int()? } else { 1 };
        let tags = file.int()?;
        if !(0..=1 << 16).contains(&tags) || here < 1 {
            return Err(DomainError::new(format!("has elements with {tags} tags")));
        }
        for _ in 0..here {
            if binary {
                file.int()?;
            }
            let all = (0..tags).map(|_| file.int()).collect::<Read<Vec<i64>>>()?;
            let nodes = (0..corners)
                .map(|_| file.int().map(|node| node as u64))
                .collect::<Read<Vec<u64>>>()?;
            // The first tag is the group; 0 is none.
            let groups = all.first().copied().filter(|&group| group != 0);
            contents.elements.push(Listed {
                dimension,
                groups: groups.into_iter().collect(),
                nodes,
            });
            read += 1;
        }
    }
    Ok(())
}

fn elements_4(file: &mut Bytes, contents: &mut Contents) -> Read<()> {
    let blocks = file.size()?;
    for _ in 0..3 {
        file.size()?;
    }
    for _ in 0..blocks {
        let entity = (file.int()?, file.int()?);
        let (dimension, corners) = shape(file.int()?)?;
        let count = file.size()?;
        let groups = contents.entities.get(&entity).cloned().unwrap_or_default();
        for _ in 0..count {
            file.size()?;
            let nodes = (0..corners)
                .map(|_| file.size().map(|node| node as u64))
                .collect::<Read<Vec<u64>>>()?;
            contents.elements.push(Listed {
                dimension,
                groups: groups.clone(),
                nodes,
            });
        }
    }
    Ok(())
}

impl Contents {
    /// The cells of the wanted dimension, and the facets one below it that are in a group.
    fn mesh(self, dimension: usize) -> Read<RawMesh> {
        if dimension == 2
            && let Some(node) = self.used().find(|place| place[2] != 0.0)
        {
            return Err(DomainError::new(format!(
                "is not in the plane: it has a node at {node:?}, and dimension = 2 asks for z = 0"
            )));
        }
        let mut mesh = RawMesh::default();
        let mut places: HashMap<u64, u32> = HashMap::new();
        for listed in &self.elements {
            if listed.dimension != dimension && listed.dimension + 1 != dimension {
                continue;
            }
            let mut corners = Vec::new();
            for tag in &listed.nodes {
                let Some(place) = self.nodes.get(tag) else {
                    return Err(DomainError::new(format!(
                        "has an element with node {tag}, which is not there"
                    )));
                };
                let index = *places.entry(*tag).or_insert_with(|| {
                    mesh.nodes.push(*place);
                    mesh.nodes.len() as u32 - 1
                });
                if corners.contains(&index) {
                    return Err(DomainError::new(format!("has an element with node {tag} twice")));
                }
                corners.push(index);
            }
            let element = Element::new(listed.dimension, &corners);
            if listed.dimension == dimension {
                mesh.cells.push(element);
                continue;
            }
            for &group in &listed.groups {
                let key = (listed.dimension as i64, group);
                let name = self.names.get(&key).cloned();
                mesh.named
                    .push((name.unwrap_or_else(|| format!("group {group}")), element));
            }
        }
        let kinds = match dimension {
            2 => "triangles and quadrilaterals",
            _ => "tetrahedra and hexahedra",
        };
        mesh.what = format!("mesh of {} {kinds}, {} nodes", mesh.cells.len(), mesh.nodes.len());
        Ok(mesh)
    }

    fn used(&self) -> impl Iterator<Item = Place> + '_ {
        let tags = self.elements.iter().flat_map(|listed| &listed.nodes);
        tags.filter_map(|tag| self.nodes.get(tag).copied())
    }
}
