//! One test a proposition: `cargo test proposition_3_4_2` runs one. The names come from the registry, so a new
//! proposition needs no line here.

use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windtunnel::lab::SeededLab;
use windtunnel_model::propositions::{self, FOLDERS, Plan, Proposition, judge};
use windtunnel_model::verdict::Verdict;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = propositions::all()
        .map(|proposition| Trial::test(name(proposition), move || as_stated(proposition)))
        .collect();
    trials.push(Trial::test("propositions_are_registered", registered));
    trials.push(Trial::test("propositions_have_what_keeps_them_honest", honest));
    libtest_mimic::run(&arguments, trials).exit();
}

fn name(proposition: &Proposition) -> String {
    format!("proposition_{}", proposition.id.to_lowercase().replace(['.', '-'], "_"))
}

/// Every verdict is what the sources say, every ablation is refuted, every mutant is caught.
fn as_stated(proposition: &Proposition) -> Result<(), Failed> {
    let plan = Plan { seed: 1, mutants: true, ..Plan::default() };
    let report = judge(proposition, &plan, &mut SeededLab::new(plan.seed));
    let mut wrong = Vec::new();
    for profile in report.profiles.iter().filter(|profile| !profile.expected) {
        for check in &profile.checks {
            let told = check.evidence.as_ref().map(|e| e.text.as_str()).or(check.reason.as_deref());
            wrong.push(format!(
                "{} {} in {}: {}",
                check.name,
                check.verdict,
                profile.profile,
                told.unwrap_or_default()
            ));
        }
    }
    for variation in report.ablations.iter().chain(&report.mutants) {
        if variation.verdict != Verdict::Refuted {
            wrong.push(format!("{} is not refuted but {}", variation.name, variation.verdict));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Every file with a `PROPOSITION` is in its folder's list, and the lists hold nothing else.
fn registered() -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/src/propositions");
    let mut folders: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for entry in std::fs::read_dir(&root)?.collect::<Result<Vec<_>, _>>()? {
        if entry.file_type()?.is_dir() {
            let files = std::fs::read_dir(entry.path())?.collect::<Result<Vec<_>, _>>()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            folders.insert(name, files.into_iter().map(|file| file.path()).collect());
        }
    }
    let known: Vec<&str> = FOLDERS.iter().map(|(name, _)| *name).collect();
    if !folders.keys().all(|name| known.contains(&name.as_str())) || folders.len() != known.len() {
        return Err(format!("folders {:?}, registry {known:?}", folders.keys()).into());
    }
    for (folder, listed) in FOLDERS {
        let list = std::fs::read_to_string(root.join(folder).join("mod.rs"))?;
        let mut stated = 0;
        for file in &folders[folder] {
            let text = std::fs::read_to_string(file)?;
            if !text.contains("const PROPOSITION: Proposition") {
                continue;
            }
            stated += 1;
            let module = file.file_stem().unwrap_or_default().to_string_lossy();
            if !list.contains(&format!("&{module}::PROPOSITION")) {
                return Err(
                    format!("{folder}/{module}.rs is in no registry: add it to {folder}/mod.rs").into()
                );
            }
        }
        if stated != listed.len() {
            return Err(
                format!("{folder}: {stated} files state a proposition, {} are listed", listed.len()).into()
            );
        }
    }
    let mut ids: Vec<&str> = propositions::all().map(|proposition| proposition.id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two propositions have the id {}", pair[0]).into()),
        None => Ok(()),
    }
}

/// A proposition without a check, or with neither ablation nor mutant, proves nothing; names are unique.
fn honest() -> Result<(), Failed> {
    for proposition in propositions::all() {
        let id = proposition.id;
        if proposition.checks.is_empty() {
            return Err(format!("{id} has no check").into());
        }
        if proposition.ablations.is_empty() && proposition.mutants.is_empty() {
            return Err(format!("{id} has neither an ablation nor a mutant").into());
        }
        let checks = proposition.checks.iter().map(|check| check.name);
        let variations =
            proposition.ablations.iter().chain(proposition.mutants).map(|variation| variation.name);
        let mut names: Vec<&str> = checks.chain(variations).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{id}: two checks or variations are named {}", pair[0]).into());
        }
        for difference in proposition.differences {
            if !proposition.checks.iter().any(|check| check.name == difference.check) {
                return Err(format!(
                    "{id}: a difference names the check {}, which is not there",
                    difference.check
                )
                .into());
            }
        }
    }
    Ok(())
}
