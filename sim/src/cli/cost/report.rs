//! The figures of `cost`, as the command-line contract names them.

use super::CostArgs;
use super::gather::{Gathered, Server};
use super::project::PartRow;
use super::settings::InForce;
use crate::cli::CliError;
use serde::Serialize;
use serde_json::Value;
use windtunnel_model::context::amounts::{largest_used_in_favour, used_in_order};
use windtunnel_model::context::cache::Lifetime;
use windtunnel_model::context::definition::Definition;
use windtunnel_model::context::listing::{self, Description, Listed};
use windtunnel_model::context::loading::{Decision, Facts, Loading, Setting, Size, decide};
use windtunnel_model::context::plan::{self, Cost, OVERHEAD_BYTES, Session, Strategy, Tool, search_bytes};
use windtunnel_model::context::price::{ModelFacts, Models, generation, window};
use windtunnel_model::context::tokens::{Counter, utf16_len};
use windtunnel_model::profile::context::{ContextParameters, UnloadedCall};
use windtunnel_model::sources::skills::Skill;

/// One definition.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DefinitionRow {
    pub(super) name: String,
    /// The whole definition as it is sent.
    pub(super) tokens: u64,
    pub(super) chars: u64,
    pub(super) name_tokens: u64,
    pub(super) description_tokens: u64,
    /// What is cut off the description at the profile's cap, in characters.
    pub(super) cut_chars: u64,
    pub(super) used: bool,
}

/// One server.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ServerRow {
    pub(super) name: String,
    pub(super) tools: usize,
    pub(super) upfront_tokens: u64,
    pub(super) names_tokens: u64,
    pub(super) instructions_tokens: u64,
    pub(super) crossover_used: Option<u64>,
    /// USD that this server alone adds to the session, upfront, with none of its tools used.
    pub(super) upfront_usd: Option<f64>,
    /// The same deferred: only its names stand.
    pub(super) deferred_usd: Option<f64>,
    /// The same deferred, with three of its tools used (all, where it has fewer).
    pub(super) deferred_three_used_usd: Option<f64>,
    pub(super) definitions: Vec<DefinitionRow>,
}

/// What shortening a definition would save.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Heavy {
    pub(super) name: String,
    pub(super) tokens: u64,
    /// USD over the session, upfront.
    pub(super) usd: f64,
    /// Tokens saved by a description of its first sentence only.
    pub(super) first_sentence_saves: u64,
    /// Tokens saved by a schema without descriptions.
    pub(super) bare_schema_saves: u64,
}

/// The session in one strategy.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SessionRow {
    #[serde(flatten)]
    pub(super) cost: Cost,
    /// USD of the session less that of the same session without these tools.
    pub(super) tools_usd: Option<f64>,
    /// USD of the same session if the order of the tools changed from request to request.
    pub(super) order_changes_usd: Option<f64>,
    /// Tokens read from the cache that a changing order loses.
    pub(super) order_changes_lost_hits: u64,
}

/// The session.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SessionReport {
    pub(super) turns: u64,
    pub(super) base: u64,
    pub(super) growth: u64,
    pub(super) upfront: SessionRow,
    pub(super) deferred: SessionRow,
    pub(super) crossover_turns: Option<u64>,
}

/// The skills.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SkillsReport {
    pub(super) skills: usize,
    pub(super) listed: usize,
    pub(super) listing_tokens: u64,
    pub(super) listing_chars: u64,
    pub(super) budget_chars: Option<u64>,
    /// Skills of which only the name is listed.
    pub(super) without_description: Vec<String>,
    /// Skills whose description is cut.
    pub(super) cut: Vec<String>,
    /// What all bodies together would take: not resident.
    pub(super) bodies_tokens: u64,
    pub(super) faults: Vec<String>,
}

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) profile: &'static str,
    pub(super) model: String,
    pub(super) prices_of: String,
    pub(super) encoding: String,
    pub(super) encoding_error: &'static str,
    pub(super) servers: Vec<ServerRow>,
    /// Tokens of all definitions.
    pub(super) upfront: u64,
    /// Tokens of all names, and of the definitions of the used tools.
    pub(super) deferred: u64,
    pub(super) names: u64,
    /// The same as `deferred`, with the search tool, its heading and the searches.
    pub(super) deferred_with_overhead: u64,
    /// Expected tokens, deferred, under `--use-random`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deferred_expected: Option<f64>,
    pub(super) used: Vec<String>,
    /// The most tools that may be used while deferring is smaller: u < N(d - m)/d with the mean sizes.
    pub(super) crossover_used: Option<u64>,
    pub(super) crossover_used_with_overhead: Option<u64>,
    pub(super) crossover_used_heaviest_first: Option<u64>,
    pub(super) crossover_used_lightest_first: Option<u64>,
    pub(super) decision: Decision,
    pub(super) session: SessionReport,
    pub(super) heaviest: Vec<Heavy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skills: Option<SkillsReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) project: Option<Vec<PartRow>>,
    /// What becomes of a call of a deferred tool that no search has loaded.
    pub(super) unloaded_call: UnloadedCall,
    /// What the project's settings change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) settings: Vec<String>,
    pub(super) not_counted: Vec<String>,
    #[serde(skip)]
    pub(super) plan_tools: Vec<Tool>,
    #[serde(skip)]
    pub(super) plan_used: Vec<usize>,
}

pub(super) fn price_of<'a>(models: &'a Models, id: &str) -> Result<&'a ModelFacts, CliError> {
    models.find(id).ok_or_else(|| {
        let known: Vec<&str> = models.models.iter().map(|model| model.matches.as_str()).collect();
        CliError::with_hint(
            format!("no prices for model `{id}`"),
            format!(
                "the table of {} knows {}; give another with --prices FILE",
                models.date,
                known.join(", ")
            ),
        )
    })
}

/// The session that the arguments describe.
pub(super) fn session_of(args: &CostArgs) -> Session {
    let session = &args.session;
    let per_search = session.per_search.max(1);
    Session {
        turns: session.turns,
        base: session.base,
        growth: session.growth,
        output: session.output,
        overhead: OVERHEAD_BYTES.div_ceil(4),
        search: search_bytes(per_search as u64).div_ceil(4),
        per_search,
        lifetime: Lifetime::FiveMinutes,
        pause: session.pause,
        order_changes: false,
    }
}

/// One line of the list of names: the name and its line end.
fn name_line(definition: &Definition) -> String {
    format!("{}\n", definition.qualified())
}

fn server_row(
    server: &Server,
    used: &dyn Fn(&Definition) -> bool,
    parameters: &ContextParameters,
    counter: &dyn Counter,
) -> ServerRow {
    let definitions: Vec<DefinitionRow> = server
        .tools
        .iter()
        .map(|tool| {
            let wire = tool.wire(parameters);
            let text = wire.to_string();
            let sent = wire.get("description").and_then(Value::as_str).unwrap_or_default();
            DefinitionRow {
                name: tool.qualified(),
                tokens: counter.count(&text),
                chars: utf16_len(&text),
                name_tokens: counter.count(&name_line(tool)),
                description_tokens: counter.count(sent),
                cut_chars: utf16_len(&tool.description).saturating_sub(parameters.mcp_text_cap.value as u64),
                used: used(tool),
            }
        })
        .collect();
    let (n, d, m) = sums(&definitions);
    ServerRow {
        name: server.name.clone(),
        tools: definitions.len(),
        upfront_tokens: d,
        names_tokens: m,
        instructions_tokens: if server.instructions.is_empty() {
            0
        } else {
            counter.count(&server.instructions)
        },
        crossover_used: crossover(n, d, m, 0),
        upfront_usd: None,
        deferred_usd: None,
        deferred_three_used_usd: None,
        definitions,
    }
}

fn sums(rows: &[DefinitionRow]) -> (u64, u64, u64) {
    let sum = |of: fn(&DefinitionRow) -> u64| rows.iter().map(of).sum();
    (rows.len() as u64, sum(|row| row.tokens), sum(|row| row.name_tokens))
}

/// Proposition 3.8 part 3 with the mean sizes d = D/N and m = M/N, without rounding: multiplied by N, all is integer.
fn crossover(n: u64, definitions: u64, names: u64, overhead: u64) -> Option<u64> {
    largest_used_in_favour(n, definitions, names, n * overhead)
}

/// The tools taken as used: those named, or a number of them spread evenly over the list.
fn spread(count: usize, of: usize) -> Vec<usize> {
    let count = count.min(of);
    (0..count).map(|index| (2 * index + 1) * of / (2 * count.max(1))).collect()
}

/// Tools that a session uses where nothing is said.
const USED_BY_DEFAULT: usize = 3;

fn used_indices(args: &CostArgs, all: &[&Definition]) -> Result<Vec<usize>, CliError> {
    if let Some(p) = args.use_random {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a count"
        )]
        return Ok(spread((p * all.len() as f64).round() as usize, all.len()));
    }
    if args.used.is_empty() {
        return Ok(spread(USED_BY_DEFAULT, all.len()));
    }
    args.used
        .iter()
        .map(|name| {
            all.iter()
                .position(|tool| tool.qualified() == *name || tool.name == *name)
                .ok_or_else(|| CliError::input(format!("--use: no tool `{name}` in the lists")))
        })
        .collect()
}

pub(super) fn build(
    args: &CostArgs,
    gathered: &Gathered,
    project: Option<Vec<PartRow>>,
    in_force: &InForce,
    models: &Models,
    counter: &dyn Counter,
) -> Result<Report, CliError> {
    let parameters = args.session.profile.profile().context;
    let model = price_of(models, &args.session.model)?;
    let all: Vec<&Definition> = gathered.servers.iter().flat_map(|server| &server.tools).collect();
    let used = used_indices(args, &all)?;
    let is_used =
        |tool: &Definition| used.iter().any(|index| all.get(*index).is_some_and(|used| *used == tool));
    let mut servers: Vec<ServerRow> =
        gathered.servers.iter().map(|server| server_row(server, &is_used, &parameters, counter)).collect();
    let session = session_of(args);
    let look_back = parameters.cache_look_back_blocks.value;
    let cost = |tools: &[Tool], used: &[usize], strategy, session: &Session| {
        plan::cost(tools, used, strategy, session, model, look_back)
            .map_err(|error| CliError::input(error.to_string()))
    };
    let plan = |rows: &[DefinitionRow]| -> Vec<Tool> {
        rows.iter()
            .map(|row| Tool { name: row.name.clone(), definition: row.tokens, name_tokens: row.name_tokens })
            .collect()
    };
    let none = cost(&[], &[], Strategy::Upfront, &session)?;
    let beyond = |cost: &Cost| cost.usd.zip(none.usd).map(|(with, without)| with - without);
    for row in &mut servers {
        let tools = plan(&row.definitions);
        let three = spread(USED_BY_DEFAULT, tools.len());
        row.upfront_usd = beyond(&cost(&tools, &[], Strategy::Upfront, &session)?);
        row.deferred_usd = beyond(&cost(&tools, &[], Strategy::Deferred, &session)?);
        row.deferred_three_used_usd = beyond(&cost(&tools, &three, Strategy::Deferred, &session)?);
    }
    let rows: Vec<DefinitionRow> = servers.iter().flat_map(|server| server.definitions.clone()).collect();
    let tools = plan(&rows);
    let (n, upfront, names) = sums(&rows);
    let loaded: u64 = used.iter().filter_map(|index| rows.get(*index)).map(|row| row.tokens).sum();
    let searches = used.len().div_ceil(session.per_search) as u64;
    let session_row = |strategy| -> Result<SessionRow, CliError> {
        let plain = cost(&tools, &used, strategy, &session)?;
        let changing = cost(&tools, &used, strategy, &Session { order_changes: true, ..session.clone() })?;
        Ok(SessionRow {
            tools_usd: beyond(&plain),
            order_changes_usd: changing.usd,
            order_changes_lost_hits: plain.usage.read.saturating_sub(changing.usage.read),
            cost: plain,
        })
    };
    let mut sizes: Vec<u64> = rows.iter().map(|row| row.tokens).collect();
    sizes.sort_unstable();
    let crossover_turns =
        plan::crossover_in_turns(&tools, &used, &session, model, look_back, session.turns.min(500))
            .map_err(|error| CliError::input(error.to_string()))?;
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
    let expected = args.use_random.map(|p| p.mul_add(upfront as f64, names as f64));
    let id = &args.session.model;
    let skills = skills_report(&gathered.skills, id, model, in_force, &parameters, counter);
    let decision = decide(
        &Facts {
            // A strategy on the command line goes before the settings.
            setting: Setting::parse(
                args.strategy.as_deref().or(in_force.tool_search.as_deref()),
                &parameters,
            ),
            generation: generation(id),
            window: model.window.or_else(|| window(id)),
            first_party: !in_force.foreign_host,
            betas_disabled: in_force.betas_disabled,
            search_denied: in_force.search_denied,
            size: Size::Counted(upfront),
        },
        &parameters,
    );
    let project = project.map(|parts| resident(parts, &servers, skills.as_ref(), &decision, counter));
    Ok(Report {
        profile: args.session.profile.word(),
        model: id.clone(),
        prices_of: models.date.clone(),
        encoding: counter.name(),
        encoding_error: counter.known_error(),
        upfront,
        deferred: names + loaded,
        names,
        deferred_with_overhead: names + loaded + session.overhead + searches * session.search,
        deferred_expected: expected,
        used: used.iter().filter_map(|index| rows.get(*index)).map(|row| row.name.clone()).collect(),
        crossover_used: crossover(n, upfront, names, 0),
        crossover_used_with_overhead: crossover(n, upfront, names, session.overhead),
        crossover_used_heaviest_first: used_in_order(sizes.iter().rev().copied(), upfront, names),
        crossover_used_lightest_first: used_in_order(sizes.iter().copied(), upfront, names),
        decision,
        session: SessionReport {
            turns: session.turns,
            base: session.base,
            growth: session.growth,
            upfront: session_row(Strategy::Upfront)?,
            deferred: session_row(Strategy::Deferred)?,
            crossover_turns,
        },
        heaviest: heaviest(&all, &rows, model, &session, &parameters, counter),
        skills,
        project,
        unloaded_call: parameters.unloaded_call.value,
        settings: in_force.said.clone(),
        not_counted: gathered.not_counted.clone(),
        servers,
        plan_tools: tools,
        plan_used: used,
    })
}

/// The parts of a project, with those that its servers and skills come to, the largest first.
fn resident(
    mut parts: Vec<PartRow>,
    servers: &[ServerRow],
    skills: Option<&SkillsReport>,
    decision: &Decision,
    counter: &dyn Counter,
) -> Vec<PartRow> {
    for part in &mut parts {
        part.tokens = counter.count(&part.text);
    }
    for server in servers {
        let names: usize = server.definitions.iter().map(|row| row.name.len() + 1).sum();
        let whole: u64 = server.definitions.iter().map(|row| row.chars).sum();
        let (what, bytes, tokens) = match decision.loading {
            Loading::Deferred => ("names", names as u64, server.names_tokens),
            Loading::Upfront | Loading::Unknown => ("definitions", whole, server.upfront_tokens),
        };
        let part = format!("server {}: {what} of {} tools", server.name, server.tools);
        parts.push(PartRow { part, bytes, tokens, text: String::new() });
    }
    if let Some(skills) = skills {
        let part = format!("listing of {} skills", skills.listed);
        parts.push(PartRow {
            part,
            bytes: skills.listing_chars,
            tokens: skills.listing_tokens,
            text: String::new(),
        });
    }
    parts.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.part.cmp(&b.part)));
    parts
}

fn heaviest(
    all: &[&Definition],
    rows: &[DefinitionRow],
    model: &ModelFacts,
    session: &Session,
    parameters: &ContextParameters,
    counter: &dyn Counter,
) -> Vec<Heavy> {
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
    let per_token = (session.turns.saturating_sub(1) as f64).mul_add(model.read, model.write_5m) / 1e6;
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(rows[index].tokens));
    order
        .into_iter()
        .take(10)
        .map(|index| {
            let (tool, row) = (all[index], &rows[index]);
            let with = |change: &dyn Fn(&mut Definition)| {
                let mut changed = tool.clone();
                change(&mut changed);
                row.tokens.saturating_sub(counter.count(&changed.wire(parameters).to_string()))
            };
            Heavy {
                name: row.name.clone(),
                tokens: row.tokens,
                #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
                usd: row.tokens as f64 * per_token,
                first_sentence_saves: with(&|tool| tool.description = first_sentence(&tool.description)),
                bare_schema_saves: with(&|tool| strip_descriptions(&mut tool.input_schema)),
            }
        })
        .collect()
}

fn first_sentence(text: &str) -> String {
    let text = text.trim();
    let end = [". ", ".\n", "\n\n"].iter().filter_map(|mark| text.find(mark)).min();
    end.map_or_else(|| text.to_owned(), |end| text[..end].to_owned() + ".")
}

/// Takes out the texts under `description` of a schema; a property that is called `description` is no text.
fn strip_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("description").is_some_and(Value::is_string) {
                fields.shift_remove("description");
            }
            fields.values_mut().for_each(strip_descriptions);
        }
        Value::Array(elements) => elements.iter_mut().for_each(strip_descriptions),
        _ => {}
    }
}

/// The budget of the skills listing in characters: as the settings say, else the profile's share of the window.
pub(super) fn listing_budget(
    id: &str,
    model: &ModelFacts,
    in_force: &InForce,
    parameters: &ContextParameters,
) -> Option<u64> {
    let window = model.window.or_else(|| window(id));
    in_force
        .budget_chars
        .or_else(|| listing::budget(window, generation(id), in_force.budget_basis_points, parameters))
}

/// The skills as the listing sees them.
pub(super) fn listed(skills: &[Skill]) -> Vec<Listed> {
    skills
        .iter()
        .map(|skill| Listed {
            name: skill.name.clone(),
            description: skill.listed_text(),
            model_invocable: skill.model_invocable,
            uses: 0,
            always_described: false,
        })
        .collect()
}

fn skills_report(
    skills: &[Skill],
    id: &str,
    model: &ModelFacts,
    in_force: &InForce,
    parameters: &ContextParameters,
    counter: &dyn Counter,
) -> Option<SkillsReport> {
    if skills.is_empty() {
        return None;
    }
    let budget = listing_budget(id, model, in_force, parameters);
    let lines =
        listing::list(&listed(skills), budget.unwrap_or(u64::MAX), in_force.description_cap, parameters);
    let text = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
    let named = |wanted| {
        lines.iter().filter(|line| line.description == wanted).map(|line| line.name.clone()).collect()
    };
    let faults =
        skills.iter().flat_map(|skill| skill.faults.iter().map(|fault| format!("{}: {fault}", skill.name)));
    Some(SkillsReport {
        skills: skills.len(),
        listed: lines.len(),
        listing_tokens: counter.count(&text),
        listing_chars: listing::characters(&lines),
        budget_chars: budget,
        without_description: named(Description::Dropped),
        cut: named(Description::Cut),
        bodies_tokens: skills.iter().map(|skill| counter.count(&skill.body)).sum(),
        faults: faults.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_property_called_description_stays() {
        let mut schema = json!({"description": "text", "properties": {"description": {"type": "string", "description": "t"}}});
        strip_descriptions(&mut schema);
        assert_eq!(schema, json!({"properties": {"description": {"type": "string"}}}));
    }

    #[test]
    fn used_tools_are_spread_and_within_the_list() {
        assert_eq!(spread(3, 12), [2, 6, 10]);
        assert_eq!(spread(5, 2), [0, 1]);
        assert!(spread(3, 0).is_empty());
    }
}
