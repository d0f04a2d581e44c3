//! Proposition 3.8 (2): what tools cost when they are deferred.

use super::costs::{loaded, name, prompt, session, size, sizes, tool};
use crate::context::amounts::{self, Sizes};
use crate::context::definition::Definition;
use crate::context::loading::Loading;
use crate::profile::context::ContextParameters;
use crate::propositions::{Check, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "3.8.2",
    title: "Deferred, tools take their names and what is used",
    notion: "d_i is the size of a definition, m_i <= d_i that of its name in the list, U the set of tools that were \
             searched for and loaded. The search tool, the heading of the list and the words of each search are counted \
             apart: the statement is about the tools.",
    statement: "Deferred the resident size is the sum of all m_i and of the d_i of U.",
    source: "000, proposition 3.8 (2); context-cost 2.4",
    hypotheses: &[Hypothesis {
        text: "a definition that is loaded stands in the prompt once",
        why: "a second search for the same tool would otherwise pay for it again",
    }],
    checks: &[Check {
        name: "on-the-request",
        method: Method::Bounded,
        claim: "over every list of short and long definitions and every U, loaded one search a tool, the rendered prompt \
                grows by exactly the names at the start and by exactly the definitions of U afterwards",
        run: |trial| law(trial, false, |used, _| used),
    }],
    ablations: &[Variation {
        name: "loaded-twice",
        text: "each tool of U is searched for twice, and the second search pays for the definition again",
        run: |trial| law(trial, true, |used, _| used),
    }],
    mutants: &[Variation {
        name: "all-loaded-at-the-first-search",
        text: "the first search loads every definition",
        run: |trial| law(trial, false, |used, n| if used.is_empty() { used } else { (0..n).collect() }),
    }],
    differences: &[],
    real: None,
};

/// `searched` says which tools are really searched for where U is to be loaded.
fn law(trial: &mut Trial<'_>, twice: bool, searched: fn(Vec<usize>, usize) -> Vec<usize>) -> Outcome {
    let most = trial.bound("tools", 5, 8);
    let parameters = trial.profile().context;
    // What the search tool, the heading and the words of one search take is measured on another session with one tool.
    let reference = Reference::measure(&parameters);
    let cases = (0..=most)
        .flat_map(|n| sizes(n).flat_map(move |sizes| (0..1u32 << n).map(move |u| (sizes.clone(), u))));
    trial.every(cases, |(sizes, code)| {
        let n = sizes.len();
        let used: Vec<usize> = (0..n).filter(|k| code >> k & 1 == 1).collect();
        let tools: Vec<Definition> = sizes.iter().enumerate().map(|(n, size)| tool(n, *size)).collect();
        let part = |k: usize, tool: &Definition, used: bool| Sizes {
            definition: loaded(tool, &parameters),
            name: name(tool),
            used: used && code >> k & 1 == 1,
        };
        let parts = |used: bool| -> Vec<Sizes> {
            tools.iter().enumerate().map(|(k, tool)| part(k, tool, used)).collect()
        };
        let mut session = session(&tools, Loading::Deferred, &parameters);
        let heading = if tools.is_empty() { 0 } else { reference.heading };
        let resident = |session: &mut _, searches: u64| {
            let all = i128::from(size(&prompt(session))) - i128::from(reference.nothing);
            all - i128::from(heading) - i128::from(reference.search * searches)
        };
        let at_start = resident(&mut session, 0);
        let names = amounts::deferred(&parts(false));
        ensure!(
            at_start == i128::from(names),
            "descriptions of {sizes:?} characters: {at_start} bytes at the start, the names take {names}"
        );
        let wanted = searched(used.clone(), n);
        let again: &[usize] = if twice { &wanted } else { &[] };
        let mut searches = 0;
        for index in wanted.iter().chain(again) {
            let Some(tool) = tools.get(*index) else { continue };
            session.search("s1", &format!("select:{}", tool.qualified()));
            searches += 1;
        }
        let at_end = resident(&mut session, searches);
        let formula = amounts::deferred(&parts(true));
        ensure!(
            at_end == i128::from(formula),
            "descriptions of {sizes:?} characters, U = {used:?}: {at_end} bytes, the formula says {formula}"
        );
        Ok(())
    })
}

/// What stands in a prompt beside names and definitions.
struct Reference {
    nothing: u64,
    heading: u64,
    search: u64,
}

impl Reference {
    fn measure(parameters: &ContextParameters) -> Self {
        let tool = tool(0, 40);
        let nothing = size(&prompt(&mut session(&[], Loading::Deferred, parameters)));
        let mut one = session(std::slice::from_ref(&tool), Loading::Deferred, parameters);
        let start = size(&prompt(&mut one));
        one.search("s1", &format!("select:{}", tool.qualified()));
        let after = size(&prompt(&mut one));
        Self {
            nothing,
            heading: start.saturating_sub(nothing + name(&tool)),
            search: after.saturating_sub(start + loaded(&tool, parameters)),
        }
    }
}
