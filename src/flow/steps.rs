//! The steps of a flow.

use super::choice::{Chooser, Found, StepLoad, Weighted};
use super::scheme::{GAMMA, difference};
use super::system::System;
use super::{FlowLosses, FlowObserver, FlowOutcome, FlowParams, FlowState, FlowStep, Frame, Scheme};
use crate::error::SolveError;
use crate::network::Network;
use crate::vector::add_scaled;

/// A neuron counts when it takes more off a step's functional than this part of what the error in time does.
const BALANCE: f64 = 0.02;
/// Below this part of ½‖u‖² a decrease is rounding.
const ROUNDING: f64 = 1e-15;
/// Where candidates had nothing to add they are looked at again after 1, 2, 4, … steps, at most so many.
const LONGEST_WAIT: usize = 8;
/// The energy has risen when it is higher by this part of its largest size.
const RISEN: f64 = 1e-10;
/// The same where multipliers hold conditions.
const RISEN_HELD: f64 = 1e-4;

/// Follows a flow from its initial value, or from where it was interrupted. New neurons are kept only if they lower the
/// functional of their step on `validation`, too.
pub fn flow(
    losses: &FlowLosses,
    validation: Option<&FlowLosses>,
    params: &FlowParams,
    (initial, start): (&Network, Option<&FlowState>),
    observer: &mut FlowObserver,
) -> Result<FlowOutcome, SolveError> {
    let mut run = Run::new(losses, validation, params, (initial, start))?;
    let mut interrupted = false;
    if start.is_none() {
        interrupted = run.tell(0, None, observer)?;
    }
    while run.state.step < params.steps && !interrupted {
        let (new, time_error) = run.step()?;
        interrupted = run.tell(new, time_error, observer)?;
    }
    let warnings = run.warnings();
    Ok(FlowOutcome {
        interrupted: interrupted && run.state.step < params.steps,
        state: run.state,
        warnings,
    })
}

struct Run<'l, 'a, 'p> {
    params: &'p FlowParams<'p>,
    system: System<'l, 'a>,
    validation: Option<System<'l, 'a>>,
    chooser: Chooser,
    state: FlowState,
}

impl<'l, 'a, 'p> Run<'l, 'a, 'p> {
    fn new(
        losses: &'l FlowLosses<'a>,
        validation: Option<&'l FlowLosses<'a>>,
        params: &'p FlowParams<'p>,
        (initial, start): (&Network, Option<&FlowState>),
    ) -> Result<Self, SolveError> {
        let zero = Network::zero(initial.activation, initial.dimension);
        let mut state = start.cloned().unwrap_or_else(|| FlowState {
            neurons: initial.neurons.clone(),
            initial: initial.len(),
            history: vec![initial.coefficients.clone()],
            patience: (1, 0),
            ..FlowState::default()
        });
        let mut chooser = Chooser::new(losses, validation, params, &zero)?;
        let mut system = System::new(losses, zero.clone());
        let grows = params.neurons_per_step > 0 && params.neurons > state.initial;
        for neuron in &state.neurons {
            let column = system.column(neuron)?;
            // What the others span, to the digits of a Gram matrix, they stand for.
            if system.try_add(neuron, column, 0.0)? && grows {
                chooser.account(&system, params)?;
            }
        }
        if system.neurons.len() < state.neurons.len() {
            let whole = system.step().at(&zero)?.curvature(initial)?;
            let load = whole.list_scores(&system.neurons)?;
            state.history = vec![system.minimise(&load, 0.0, &[], true)?];
            state.neurons.clone_from(&system.neurons);
            state.initial = system.neurons.len();
        }
        system.loads.add(&state.neurons[..state.initial])?;
        for neuron in &state.neurons[state.initial..] {
            system.loads.add(std::slice::from_ref(neuron))?;
        }
        let mut run = Self {
            params,
            system,
            validation: validation.map(|losses| System::new(losses, zero)),
            chooser,
            state,
        };
        if start.is_none() {
            run.go_to((params.time)(0))?;
            run.state.energy = run.energy()?;
            run.keep();
        }
        Ok(run)
    }

    fn now(&self) -> &[f64] {
        &self.state.history[0]
    }

    fn time(&self) -> f64 {
        (self.params.time)(self.state.step)
    }

    /// One step; how many neurons are new, and what the error in time takes off the functional.
    fn step(&mut self) -> Result<(usize, Option<f64>), SolveError> {
        let starts = self.params.scheme == Scheme::Bdf2 && self.state.history.len() < 2;
        let (u, new, time_error) = match starts {
            true => {
                let (u, new) = self.first_step()?;
                (u, new, None)
            }
            false => self.ordinary_step()?,
        };
        self.state.step += 1;
        if let Some(error) = time_error {
            let size = 0.5 * self.system.curvature.square(&u);
            self.state.time_error = (error / size.max(f64::MIN_POSITIVE)).sqrt();
        }
        self.state.history.insert(0, u);
        self.state.history.truncate(self.params.scheme.order() + 1);
        self.note_energy()?;
        if (self.params.saved)(self.state.step) {
            self.keep();
        }
        Ok((new, time_error))
    }

    fn ordinary_step(&mut self) -> Result<(Vec<f64>, usize, Option<f64>), SolveError> {
        let scheme = self.params.scheme;
        let time = (self.params.time)(self.state.step + 1);
        self.go_to(time)?;
        let mut load = self.load(time, scheme.earlier(), scheme.extrapolation(), self.params.step)?;
        let quadratic = self.params.quadratic;
        let mut u = self.system.solve(&mut load, 0.0, self.now(), quadratic)?;
        let time_error = self.time_error(&u);
        let new = match self.looks() {
            true => self.look(&load, &mut u, time_error)?,
            false => 0,
        };
        if new > 0 && load.multiplier.is_some() {
            u = self.system.solve(&mut load, 0.0, &u, quadratic)?;
        }
        Ok((u, new, time_error))
    }

    /// The first step of BDF2: both stages of SDIRK2, which need the mass only and A's factor, like any other step.
    fn first_step(&mut self) -> Result<(Vec<f64>, usize), SolveError> {
        let new = match self.looks() {
            true => self.prepare()?,
            false => 0,
        };
        let (tau, start) = (self.params.step, (self.params.time)(0));
        let stage = GAMMA * tau;
        // 1/γτ in place of c/τ.
        let shift = 1.0 / stage - self.params.scheme.leading() / tau;
        let quadratic = self.params.quadratic;
        self.go_to(start + stage)?;
        let mut load = self.load(start + stage, &[1.0], &[1.0], stage)?;
        let middle = self.system.solve(&mut load, shift, self.now(), quadratic)?;
        // u₀ + (1 − γ) τ k with k = (u' − u₀)/γτ.
        let weight = (1.0 - GAMMA) / GAMMA;
        let mut earlier: Vec<f64> = middle.iter().map(|b| weight / stage * b).collect();
        let known = self.now().len();
        add_scaled((1.0 - weight) / stage, self.now(), &mut earlier[..known]);
        self.go_to((self.params.time)(1))?;
        let mut load = self.load((self.params.time)(1), &[1.0], &[1.0 - 1.0 / GAMMA], stage)?;
        load.earlier = earlier;
        load.explicit.extend(self.explicit(&middle, 1.0 / GAMMA)?);
        Ok((self.system.solve(&mut load, shift, &middle, quadratic)?, new))
    }

    /// New neurons before the first step of BDF2, as an implicit Euler step of the same curvature asks for them.
    fn prepare(&mut self) -> Result<usize, SolveError> {
        let scheme = self.params.scheme;
        self.go_to((self.params.time)(1))?;
        let mut load = self.load(
            (self.params.time)(1),
            &[scheme.leading()],
            &[1.0],
            self.params.step,
        )?;
        let mut u = self
            .system
            .solve(&mut load, 0.0, self.now(), self.params.quadratic)?;
        let time_error = self.time_error(&u);
        self.look(&load, &mut u, time_error)
    }

    /// The load of a step to a time: what acts there, the earlier u with these weights over τ, and G at them.
    fn load(
        &self,
        time: f64,
        earlier: &[f64],
        extrapolation: &[f64],
        tau: f64,
    ) -> Result<StepLoad<'a>, SolveError> {
        let history = &self.state.history;
        let mut sum = vec![0.0; self.system.neurons.len()];
        for (weight, u) in earlier.iter().zip(history) {
            add_scaled(weight / tau, u, &mut sum[..u.len()]);
        }
        let mut explicit = Vec::new();
        for (&weight, u) in extrapolation.iter().zip(history) {
            explicit.extend(self.explicit(u, weight)?);
        }
        Ok(StepLoad {
            acting: self.system.loads.at(time)?,
            explicit,
            earlier: sum,
            multiplier: match &self.system.holding {
                Some(holding) => Some(holding.multiplier(time)?),
                None => None,
            },
        })
    }

    /// Goes to a time, on all points.
    fn go_to(&mut self, time: f64) -> Result<(), SolveError> {
        self.system.go_to(time)?;
        match &mut self.validation {
            Some(validation) => validation.go_to(time),
            None => Ok(()),
        }
    }

    /// ∇G(u) with a weight, if there is a G.
    fn explicit(&self, u: &[f64], weight: f64) -> Result<Option<Weighted<'a>>, SolveError> {
        let Some(explicit) = self.system.losses.explicit else {
            return Ok(None);
        };
        Ok(Some((weight, explicit.gradient(&self.system.network(u))?)))
    }

    /// What the error of a step in time takes off its functional: from the difference of u of the next order, as far as there
    /// are earlier u.
    fn time_error(&self, u: &[f64]) -> Option<f64> {
        let scheme = self.params.scheme;
        let order = (scheme.order() + 1).min(self.state.history.len());
        let mut sum = vec![0.0; u.len()];
        for (weight, u) in difference(order).into_iter().zip(
            [u].into_iter()
                .chain(self.state.history.iter().map(Vec::as_slice)),
        ) {
            add_scaled(weight, u, &mut sum[..u.len()]);
        }
        let part = scheme.error_part();
        (order > 0).then(|| 0.5 * part * part * self.system.curvature.square(&sum))
    }

    /// Whether candidates are looked at in this step.
    fn looks(&mut self) -> bool {
        if self.params.neurons_per_step == 0 {
            return false;
        }
        let [now, next] = [0, 1].map(|more| (self.params.time)(self.state.step + more));
        let changes = self.system.changes(now, next);
        let (_, wait) = &mut self.state.patience;
        if *wait > 0 && !changes {
            *wait -= 1;
            return false;
        }
        true
    }

    fn look(
        &mut self,
        load: &StepLoad,
        u: &mut Vec<f64>,
        time_error: Option<f64>,
    ) -> Result<usize, SolveError> {
        let whole = 0.5 * self.system.curvature.square(u);
        let enough = match (self.params.tolerance, time_error) {
            (Some(tolerance), _) => tolerance * tolerance * whole,
            (None, Some(error)) => BALANCE * error,
            (None, None) => return Ok(0),
        };
        let enough = enough.max(ROUNDING * whole);
        if self.system.neurons.len() >= self.params.neurons && self.state.exhausted {
            return Ok(0);
        }
        // What was not spent on the initial value may go into the first step.
        let most = match self.state.step {
            0 => {
                self.params.neurons_per_step + self.params.initial_neurons.saturating_sub(self.state.initial)
            }
            _ => self.params.neurons_per_step,
        };
        let Found { new, refused, more } = self.chooser.enrich(
            &mut self.system,
            load,
            (u, enough),
            (self.params, most),
            self.validation.as_ref(),
        )?;
        self.state.neurons.clone_from(&self.system.neurons);
        self.state.refused += refused;
        self.state.exhausted |= more && self.system.neurons.len() >= self.params.neurons;
        let (interval, wait) = &mut self.state.patience;
        *interval = match new {
            0 => (2 * *interval).min(LONGEST_WAIT),
            _ => 1,
        };
        *wait = *interval - 1;
        Ok(new)
    }

    /// E(u) now.
    fn energy(&self) -> Result<f64, SolveError> {
        let u = self.now();
        let system = &self.system;
        let mass = self.params.scheme.leading() / self.params.step;
        let inside = match self.params.quadratic {
            true => 0.5 * system.curvature.square(u),
            false => system.step().risk(&system.network(u))?,
        };
        let acting = system.loads.at(self.time())?;
        let load = system.loads.of_neurons(&acting, &system.neurons, 0)?;
        let explicit = match system.losses.explicit {
            Some(explicit) => explicit.risk(&system.network(u))?,
            None => 0.0,
        };
        let work = crate::vector::dot(&load[..u.len()], u);
        // The penalty of what is held is no part of E.
        let held = match &system.holding {
            Some(holding) => holding.risk(u, self.time(), &system.neurons)?,
            None => 0.0,
        };
        Ok(inside - 0.5 * mass * system.mass.square(u) - work + explicit - held)
    }

    fn note_energy(&mut self) -> Result<(), SolveError> {
        let energy = self.energy()?;
        // Neurons do not have exactly the values that are held, each number of them others.
        let risen = match self.system.holding {
            Some(_) => RISEN_HELD,
            None => RISEN,
        };
        let slack = risen * self.state.energy.abs().max(energy.abs());
        // An initial value that does not have what is held is met with energy.
        let met = self.system.holding.is_some() && self.state.step == 1;
        if self.params.autonomous && !met && energy > self.state.energy + slack {
            let (count, first) = &mut self.state.rises;
            if *count == 0 {
                *first = self.state.step;
            }
            *count += 1;
        }
        self.state.energy = energy;
        Ok(())
    }

    fn keep(&mut self) {
        self.state.frames.push(Frame {
            step: self.state.step,
            time: self.time(),
            coefficients: self.now().to_vec(),
        });
    }

    /// Shows the observer where the flow is; whether it shall end.
    fn tell(
        &self,
        new: usize,
        time_error: Option<f64>,
        observer: &mut FlowObserver,
    ) -> Result<bool, SolveError> {
        let network = self.system.network(self.now());
        let flow = observer(&FlowStep {
            step: self.state.step,
            time: self.time(),
            network: &network,
            energy: self.state.energy,
            new,
            time_error,
            state: &self.state,
        })?;
        Ok(flow.is_break())
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let (rises, first) = self.state.rises;
        if rises > 0 {
            warnings.push(format!(
                "the energy rose in {rises} of {} steps, first at t = {:.4e}, though nothing that acts depends on t: a flow's \
                 energy falls. Take shorter steps, or more neurons",
                self.state.step,
                (self.params.time)(first)
            ));
        }
        if self.state.exhausted {
            warnings.push(format!(
                "all {} neurons are in use and the steps ask for more: the error in space is larger than that in time now. \
                 Take more `neurons`",
                self.params.neurons
            ));
        }
        if self.state.refused > self.system.neurons.len() {
            warnings.push(format!(
                "{} neurons were refused because a step's functional rose with them on independent points: with more cells or \
                 points the errors would be smaller",
                self.state.refused
            ));
        }
        warnings
    }
}
