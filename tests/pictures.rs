//! The page of a run, looked at in a real browser, and the files that other programs read.
//!
//! Without Chromium the browser's part is left out; with `GREEDY_PDE_REQUIRE_BROWSER` set that is an error.

mod common;

use common::{SMALL, greedy_pde, stderr, write};
use greedy_pde::page::extrapolated_loss;
use greedy_pde::results::SavedRun;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Problems in one, two and three dimensions, on a box and a ball, with and without an exact solution.
fn problems() -> Vec<(&'static str, String)> {
    let two = SMALL
        .replace("dimension = 1", "dimension = 2")
        .replace("cells = 100", "cells = 16");
    vec![
        ("line", SMALL.to_string()),
        ("square", two.clone()),
        (
            "disk",
            two.replace("lower = -1.0\nupper = 1.0", "shape = \"ball\"\nradius = 2.0")
                .replace(
                    "rule = \"gauss\"\ncells = 16",
                    "rule = \"monte_carlo\"\npoints = 2000",
                )
                .replace("neurons = 20", "neurons = 20\nguard = false"),
        ),
        (
            "cube",
            two.replace("dimension = 2", "dimension = 3")
                .replace("exact =", "source =")
                .replace("cells = 16", "cells = 6"),
        ),
    ]
}

/// Solves a problem and says where its results are.
fn solved(directory: &Path, text: &str) -> PathBuf {
    write(directory, text);
    let output = greedy_pde(directory, &["solve", "problem.toml", "-q"]);
    assert!(output.status.success(), "{}", stderr(&output));
    directory.join("runs/small")
}

/// What a browser makes of each plot: how wide it is, how many shapes with an extent it has, how many
/// of its images were decoded.
const PROBE: &str = r#"<script>
window.addEventListener('load', async () => {
  const found = [];
  for (const svg of document.querySelectorAll('svg.plot')) {
    let shapes = 0, images = 0, broken = 0;
    for (const shape of svg.querySelectorAll('path,circle,rect')) {
      const box = shape.getBBox();
      if (box.width + box.height > 0) shapes += 1;
    }
    for (const image of svg.querySelectorAll('image')) {
      const decoded = new Image();
      await new Promise(done => {
        decoded.onload = decoded.onerror = done;
        decoded.src = image.getAttribute('href');
      });
      decoded.naturalWidth > 0 ? images += 1 : broken += 1;
    }
    found.push({id: svg.parentElement.id, width: svg.getBoundingClientRect().width, shapes, images, broken,
      nan: /NaN|inf|undefined/.test(svg.innerHTML.replace(/href="[^"]*"/g, ''))});
  }
  const wide = document.documentElement.scrollWidth > window.innerWidth;
  document.body.innerHTML = '<pre id="probe">' + JSON.stringify({found, wide}) + '</pre>';
});
</script>"#;

/// The page as Chromium sees it, in a window of this width.
fn probe(page: &Path, width: usize) -> Option<serde_json::Value> {
    ask(page, PROBE, width)
}

/// What a script in the page answers, as Chromium runs it in a window of this width.
fn ask(page: &Path, script: &str, width: usize) -> Option<serde_json::Value> {
    if Command::new("chromium").arg("--version").output().is_err() {
        assert!(
            std::env::var_os("GREEDY_PDE_REQUIRE_BROWSER").is_none(),
            "GREEDY_PDE_REQUIRE_BROWSER is set, but there is no chromium"
        );
        return None;
    }
    const ANSWER: &str = "<pre id=\"probe\">";
    let copy = page.with_file_name("probed.html");
    let html = std::fs::read_to_string(page).unwrap();
    std::fs::write(&copy, html.replace("</body>", &format!("{script}</body>"))).unwrap();
    // A browser may be slow to start on a busy machine: three attempts of a minute each.
    let dom = (0..3).find_map(|_| {
        let output = Command::new("timeout")
            .args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu"])
            .args([
                "--disable-dev-shm-usage",
                "--virtual-time-budget=10000",
                "--dump-dom",
            ])
            .arg(format!("--window-size={width},1000"))
            .arg(format!("file://{}", copy.display()))
            .output()
            .unwrap();
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        dom.contains(&format!("{ANSWER}{{")).then_some(dom)
    });
    let dom = dom.expect("the browser gave no answer");
    let start = dom.rfind(ANSWER).unwrap() + ANSWER.len();
    let end = start + dom[start..].find("</pre>").unwrap();
    Some(serde_json::from_str(&dom[start..end].replace("&amp;", "&")).unwrap())
}

/// Which moments of a flow are shown at first, and with the slider at its beginning.
const SLIDER: &str = r#"<script>
window.addEventListener('load', () => {
  const shown = () => [...document.querySelectorAll('.moment')].map(m => m.getBoundingClientRect().height > 0);
  const now = () => document.getElementById('now').textContent;
  const first = [shown(), now()], slider = document.getElementById('moment');
  slider.value = 0;
  slider.dispatchEvent(new Event('input'));
  const then = [shown(), now()];
  document.body.innerHTML = '<pre id="probe">' + JSON.stringify({first, then}) + '</pre>';
});
</script>"#;

#[test]
fn a_slider_shows_one_moment_of_a_flow_at_a_time() {
    for dimension in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        let text = SMALL
            .replace("dimension = 1", &format!("dimension = {dimension}"))
            .replace("cos(pi*x)", "exp(-t)*cos(pi*x)")
            .replace("cells = 100", "cells = 16");
        let text = format!("{text}[time]\nend = 0.1\nsteps = 4\nsave_every = 2\n");
        let run = solved(directory.path(), &text);
        let Some(told) = ask(&run.join("report.html"), SLIDER, 1200) else {
            return;
        };
        assert_eq!(
            told,
            serde_json::json!({
                "first": [[false, false, true], "t = 0.1"],
                "then": [[true, false, false], "t = 0"],
            })
        );
        for name in ["energy", "errors", "neurons", "solution"] {
            assert!(run.join(format!("plots/{name}.svg")).exists(), "{name}");
        }
    }
}

#[test]
fn a_browser_draws_every_plot_of_a_page() {
    for (name, text) in problems() {
        let directory = tempfile::tempdir().unwrap();
        let run = solved(directory.path(), &text);
        for width in [1200, 500] {
            let Some(probed) = probe(&run.join("report.html"), width) else {
                return;
            };
            let plots = probed["found"].as_array().unwrap();
            let ids: Vec<&str> = plots.iter().map(|plot| plot["id"].as_str().unwrap()).collect();
            for id in ["solution", "losses", "time"] {
                assert!(ids.contains(&id), "{name}: {id} is not in {ids:?}");
            }
            assert_eq!(ids.contains(&"errors"), name != "cube", "{name}: {ids:?}");
            assert_eq!(ids.contains(&"axis-3"), name == "cube", "{name}: {ids:?}");
            for plot in plots {
                assert!(plot["width"].as_f64().unwrap() > 150.0, "{name} {width}: {plot}");
                assert!(plot["shapes"].as_u64().unwrap() > 3, "{name} {width}: {plot}");
                assert_eq!(plot["broken"], 0, "{name} {width}: {plot}");
                assert_eq!(plot["nan"], false, "{name} {width}: {plot}");
            }
            let maps = plots.iter().filter(|plot| plot["images"] == 1).count();
            let expected = match name {
                "line" => 0,
                "cube" => 1,
                _ => 2,
            };
            assert_eq!(maps, expected, "{name}");
            assert_eq!(
                probed["wide"], false,
                "{name}: the page is wider than a window of {width}"
            );
        }
    }
}

#[test]
fn a_page_stands_alone_and_can_be_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let run = solved(directory.path(), SMALL);
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    // The name of SVG's dialect is the only address.
    let addresses = page.matches("http").count();
    assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count());
    assert!(!page.contains("<script") && !page.contains("<link"));
    for word in ["small", "order 3.00", "seconds", "solver.seed", "cos(pi*x)"] {
        assert!(page.contains(word), "{word}");
    }
    for name in ["solution.svg", "errors.svg", "losses.svg", "time.svg"] {
        let svg = std::fs::read_to_string(run.join("plots").join(name)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("<style>"), "{name}");
    }
    std::fs::remove_file(run.join("report.html")).unwrap();
    let output = greedy_pde(directory.path(), &["report", "runs/small"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(run.join("report.html")).unwrap(), page);
    let output = greedy_pde(directory.path(), &["report", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("holds no run"), "{}", stderr(&output));
}

#[test]
fn losses_are_shown_above_the_limit_they_tend_to() {
    let directory = tempfile::tempdir().unwrap();
    let run = SavedRun::load(&solved(
        directory.path(),
        &SMALL.replace("neurons = 20", "neurons = 32"),
    ))
    .unwrap();
    let limit = extrapolated_loss(&run.history).unwrap();
    // L(u_n) − L(u) is half the square of the energy norm of the error.
    let last = run.history.last().unwrap();
    let left = last.energy.unwrap().powi(2) / 2.0;
    let estimated = last.loss - limit;
    assert!(
        (0.25..4.0).contains(&(estimated / left)),
        "{estimated:e} is not {left:e}"
    );
    let page = std::fs::read_to_string(directory.path().join("runs/small/report.html")).unwrap();
    assert!(page.contains("loss above its limit") && !page.contains("loss above the last"));
}

#[test]
fn no_report_writes_none() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SMALL);
    let output = greedy_pde(directory.path(), &["solve", "problem.toml", "-q", "--no-report"]);
    assert!(output.status.success());
    assert!(!directory.path().join("runs/small/report.html").exists());
}

#[test]
fn the_papers_figure_is_drawn_and_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let output = greedy_pde(directory.path(), &["reproduce", "figure-ex2", "-q"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let svg = std::fs::read_to_string(directory.path().join("figure-ex2.svg")).unwrap();
    // A dot per grid point inside the interval, and one in the legend.
    assert!(svg.matches("<circle").count() > 100);
    let output = greedy_pde(directory.path(), &["reproduce", "figure-ex2", "-q"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--force"));
}

/// Rows of numbers below a header.
fn numbers(csv: &str) -> Vec<Vec<f64>> {
    let rows = csv.lines().skip(1);
    rows.map(|row| row.split(',').map(|field| field.parse().unwrap()).collect())
        .collect()
}

#[test]
fn evaluate_gives_values_and_derivatives() {
    let directory = tempfile::tempdir().unwrap();
    let run = solved(directory.path(), &problems()[1].1);
    std::fs::write(
        directory.path().join("points.csv"),
        "x, y\n# a comment\n0.3, -0.2\n-0.75,0.1\n",
    )
    .unwrap();
    let network = run.join("network.safetensors");
    let arguments = [
        "evaluate",
        network.to_str().unwrap(),
        "points.csv",
        "--gradient",
        "--laplacian",
    ];
    let output = greedy_pde(directory.path(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let csv = String::from_utf8(output.stdout).unwrap();
    assert!(csv.starts_with("x1,x2,u,du_dx1,du_dx2,laplacian_u\n"), "{csv}");
    let (saved, _) = greedy_pde::network_file::load(&network).unwrap();
    let rows = numbers(&csv);
    assert_eq!(rows.len(), 2);
    for row in rows {
        let x = &row[..2];
        let gradient = saved.gradient(x);
        assert!((row[2] - saved.value(x)).abs() < 1e-12);
        assert!((row[3] - gradient[0]).abs() < 1e-11 && (row[4] - gradient[1]).abs() < 1e-11);
        let h = 1e-4;
        let slope = |i: usize, step: f64| {
            let mut x = x.to_vec();
            x[i] += step;
            saved.gradient(&x)[i]
        };
        let laplacian: f64 = (0..2).map(|i| (slope(i, h) - slope(i, -h)) / (2.0 * h)).sum();
        assert!(
            (row[5] - laplacian).abs() < 0.2 * (1.0 + laplacian.abs()),
            "{} {laplacian}",
            row[5]
        );
    }
}

#[test]
fn evaluate_names_the_line_that_is_no_point() {
    let directory = tempfile::tempdir().unwrap();
    let run = solved(directory.path(), SMALL);
    let network = run.join("network.safetensors");
    for (text, words) in [
        ("0.1\nx\n", "points.csv:2: `x`"),
        ("0.1\n0.2\n0.3,0.4\n", "points.csv:3: `0.3,0.4`"),
    ] {
        std::fs::write(directory.path().join("points.csv"), text).unwrap();
        let output = greedy_pde(
            directory.path(),
            &["evaluate", network.to_str().unwrap(), "points.csv"],
        );
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    let output = greedy_pde(directory.path(), &["evaluate", "points.csv", "points.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("not a network"), "{}", stderr(&output));
}

#[test]
fn exported_grids_hold_the_solution() {
    let directory = tempfile::tempdir().unwrap();
    let run = solved(directory.path(), &problems()[1].1);
    let (network, _) = greedy_pde::network_file::load(&run.join("network.safetensors")).unwrap();
    for format in ["csv", "npy", "vtk"] {
        let arguments = ["export", "runs/small", "--format", format, "--grid", "5"];
        let output = greedy_pde(directory.path(), &arguments);
        assert!(output.status.success(), "{format}: {}", stderr(&output));
        assert_eq!(
            greedy_pde(directory.path(), &arguments).status.code(),
            Some(2),
            "overwritten"
        );
    }
    let place = |i: usize| -1.0 + 0.5 * i as f64;
    let rows = numbers(&std::fs::read_to_string(run.join("solution.csv")).unwrap());
    assert_eq!(rows.len(), 25);
    let npy = std::fs::read(run.join("solution.npy")).unwrap();
    assert!(npy.starts_with(b"\x93NUMPY\x01\x00"));
    let data = npy.len() - 25 * 8;
    assert_eq!(data % 64, 0);
    assert!(String::from_utf8_lossy(&npy[..data]).contains("'shape': (5, 5, )"));
    let vtk = std::fs::read_to_string(run.join("solution.vtk")).unwrap();
    assert!(vtk.contains("DIMENSIONS 5 5 1\nORIGIN -1 -1 0\nSPACING 0.5 0.5 1\nPOINT_DATA 25\n"));
    let in_vtk: Vec<f64> = vtk
        .lines()
        .skip(10)
        .take(25)
        .map(|line| line.parse().unwrap())
        .collect();
    for i in 0..5 {
        for j in 0..5 {
            let u = network.value(&[place(i), place(j)]);
            let row = &rows[5 * i + j];
            assert_eq!(row[..2], [place(i), place(j)]);
            let bytes: [u8; 8] = npy[data + 8 * (5 * i + j)..][..8].try_into().unwrap();
            for value in [row[2], f64::from_le_bytes(bytes), in_vtk[i + 5 * j]] {
                assert!((value - u).abs() < 1e-12, "{i} {j}: {value} {u}");
            }
        }
    }
    let huge = greedy_pde(
        directory.path(),
        &["export", "runs/small", "--format", "csv", "--grid", "1000000"],
    );
    assert_eq!(huge.status.code(), Some(2));
    assert!(
        stderr(&huge).contains("1000000000000 points"),
        "{}",
        stderr(&huge)
    );
}

#[test]
fn completions_are_printed() {
    let directory = tempfile::tempdir().unwrap();
    let output = greedy_pde(directory.path(), &["completions", "bash"]);
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("no-report"));
}
