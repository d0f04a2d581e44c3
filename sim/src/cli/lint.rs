//! `windtunnel lint [PATH]`: mistakes in settings, hooks and matchers.

use super::findings::{self, FailOn};
use super::gate::ProfileArg;
use super::{CliError, Exit, Io, write_json};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use windtunnel_model::finding::Finding;
use windtunnel_model::sources::lint::{Script, ScriptFacts, lint};
use windtunnel_model::sources::settings::Level;

/// Arguments of `lint`.
#[derive(Debug, clap::Args)]
pub struct LintArgs {
    /// A settings or hooks file, or a folder with such files
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,
    /// The weight from which on a finding makes the exit code 1
    #[arg(long, alias = "severity", value_enum, default_value = "error", value_name = "SEVERITY")]
    fail_on: FailOn,
    #[command(flatten)]
    profile: ProfileArg,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: LintFormat,
    /// Print how often each kind was found, and nothing else
    #[arg(long)]
    count: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LintFormat {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// SARIF 2.1.0
    Sarif,
}

#[derive(Serialize)]
struct Report {
    profile: &'static str,
    files: usize,
    findings: Vec<Finding>,
    counts: BTreeMap<String, usize>,
}

/// Runs it.
///
/// # Errors
/// When the path cannot be read.
pub fn run(args: &LintArgs, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let profile = args.profile.profile;
    let root = io.cwd.join(&args.path);
    let files = files_of(&root, &args.path)?;
    if files.is_empty() {
        return Err(CliError::with_hint(
            format!("{}: no settings or hooks files", args.path.display()),
            "name a file, or a folder with `.claude/settings.json` or `hooks/hooks.json`",
        ));
    }
    let parameters = profile.profile();
    let mut findings = Vec::new();
    for (path, name) in &files {
        let text =
            crate::files::read_lossy(path).map_err(|source| CliError::File { path: path.clone(), source })?;
        let scripts = DiskScripts { project: project_of(path), home: io.home.clone() };
        findings.extend(lint(level_of(path), name, &text, &parameters, &scripts));
    }
    let mut counts = BTreeMap::new();
    for finding in &findings {
        *counts.entry(finding.id.clone()).or_insert(0) += 1;
    }
    let exit = findings::exit(&findings, args.fail_on.into());
    let report = Report { profile: profile.word(), files: files.len(), findings, counts };
    match args.format {
        LintFormat::Json => write_json(io, "lint", &report)?,
        LintFormat::Sarif => write_sarif(&report, io)?,
        LintFormat::Text => print_text(&report, args.count, io)?,
    }
    Ok(exit)
}

/// The files to look at: the path itself, the usual places below it, or every JSON file directly in it.
fn files_of(root: &Path, shown: &Path) -> Result<Vec<(PathBuf, String)>, CliError> {
    if !root.is_dir() {
        return Ok(vec![(root.to_owned(), shown.to_string_lossy().into_owned())]);
    }
    let usual = [
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/managed-settings.json",
        "hooks/hooks.json",
        "settings.json",
        "settings.local.json",
    ];
    let name = |path: &str| {
        if shown == Path::new(".") {
            path.to_owned()
        } else {
            shown.join(path).to_string_lossy().into_owned()
        }
    };
    let found: Vec<(PathBuf, String)> =
        usual.iter().map(|path| (root.join(path), name(path))).filter(|(path, _)| path.is_file()).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let entries =
        std::fs::read_dir(root).map_err(|source| CliError::File { path: shown.to_owned(), source })?;
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".json"))
        .collect();
    names.sort();
    Ok(names.into_iter().map(|file| (root.join(&file), name(&file))).collect())
}

fn level_of(path: &Path) -> Level {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match name.as_str() {
        "settings.local.json" => Level::Local,
        "managed-settings.json" => Level::Managed,
        "hooks.json" => Level::Plugin,
        _ if path.parent().is_some_and(|dir| dir.ends_with(".claude")) => Level::Project,
        _ => Level::User,
    }
}

/// The folder that scripts of a file are relative to; `None` when it cannot be told.
fn project_of(path: &Path) -> Option<PathBuf> {
    let dir = path.parent()?;
    if dir.ends_with(".claude") || dir.ends_with("hooks") { dir.parent().map(Path::to_owned) } else { None }
}

struct DiskScripts {
    project: Option<PathBuf>,
    home: Option<PathBuf>,
}

impl ScriptFacts for DiskScripts {
    fn script(&self, path: &str) -> Script {
        let Some(project) = &self.project else { return Script::Unknown };
        let text = [
            "${CLAUDE_PROJECT_DIR}/",
            "$CLAUDE_PROJECT_DIR/",
            "${CLAUDE_PLUGIN_ROOT}/",
            "$CLAUDE_PLUGIN_ROOT/",
        ]
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix))
        .map_or_else(|| path.to_owned(), |rest| project.join(rest).to_string_lossy().into_owned());
        if text.contains('$') || text.contains('`') {
            return Script::Unknown;
        }
        let full = match (text.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => return Script::Unknown,
            (None, _) => project.join(&text),
        };
        match std::fs::metadata(&full) {
            Err(_) => Script::Missing,
            Ok(meta) if meta.is_file() && meta.permissions().mode() & 0o111 != 0 => Script::Executable,
            Ok(_) => Script::NotExecutable,
        }
    }
}

fn print_text(report: &Report, count: bool, io: &mut Io<'_>) -> Result<(), CliError> {
    if !count {
        for finding in &report.findings {
            let at = finding.at.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
            writeln!(io.stdout, "{at}{}: {} [{}]", finding.severity.word(), finding.message, finding.id)?;
            writeln!(io.stdout, "    why: {}", finding.why)?;
            if let Some(remedy) = &finding.remedy {
                writeln!(io.stdout, "    remedy: {remedy}")?;
            }
        }
    } else {
        for (id, number) in &report.counts {
            writeln!(io.stdout, "{number:>6} {id}")?;
        }
    }
    writeln!(
        io.stdout,
        "{} findings in {} files (profile {})",
        report.findings.len(),
        report.files,
        report.profile
    )?;
    Ok(())
}

fn write_sarif(report: &Report, io: &mut Io<'_>) -> Result<(), CliError> {
    let rules: Vec<_> = report
        .counts
        .keys()
        .map(|id| {
            let why = report.findings.iter().find(|f| f.id == *id).map(|f| f.why.clone()).unwrap_or_default();
            json!({"id": id, "fullDescription": {"text": why}})
        })
        .collect();
    let results: Vec<_> = report
        .findings
        .iter()
        .map(|finding| {
            let mut result = json!({
                "ruleId": finding.id,
                "level": finding.severity.word(),
                "message": {"text": match &finding.remedy {
                    Some(remedy) => format!("{}; {remedy}", finding.message),
                    None => finding.message.clone(),
                }},
            });
            if let (Some(place), Some(fields)) = (&finding.at, result.as_object_mut()) {
                let mut physical = json!({"artifactLocation": {"uri": place.file}});
                if let (Some(line), Some(fields)) = (place.line, physical.as_object_mut()) {
                    let column = place.column.unwrap_or(1);
                    fields.insert("region".to_owned(), json!({"startLine": line, "startColumn": column}));
                }
                fields.insert("locations".to_owned(), json!([{"physicalLocation": physical}]));
            }
            result
        })
        .collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "windtunnel", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *io.stdout, &document)?;
    writeln!(io.stdout)?;
    Ok(())
}
