#include "cli/tenancy/tenancy_plan.h"

#include <fmt/core.h>

#include "cli/table.h"
#include "common/text/printable.h"
#include "common/text/text.h"
#include "config/nearest.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/kinds.h"

namespace gantry::cli {
namespace {

struct Mark {
  char sign;
  Colour colour;
};
Mark mark_of(proto::ChangeAction action) {
  using enum proto::ChangeAction;
  switch (action) {
    case created: return {'+', Colour::green};
    case changed: return {'~', Colour::yellow};
    case removed: return {'-', Colour::red};
    case unchanged: break;
  }
  return {' ', Colour::none};
}

std::string field_line(const proto::FieldChange& field, std::size_t width, bool is_new) {
  const auto value = [](const std::string& text) {
    return text.empty() ? std::string("(none)") : printable(text);
  };
  if (is_new) return fmt::format("    {:<{}}  {}\n", field.path, width, value(field.after));
  return fmt::format("    {:<{}}  {} -> {}\n", field.path, width, value(field.before),
                     value(field.after));
}

std::string cell_text(const proto::OverQuota& over) {
  std::string_view word = "gpu";
  for (const auto& [resource, key] : tenancy::kResourceKeys)
    if (resource == over.resource) word = key;
  return over.flavor.empty() ? std::string(word) : fmt::format("{} of {}", word, over.flavor);
}

void print_lines(std::FILE* out, std::string_view what, const std::vector<std::string>& lines,
                 Colour colour, bool in_colour) {
  for (const std::string& line : lines)
    fmt::print(out, "{}{}:{} {}\n", in_colour ? colour_on(colour) : "", what,
               in_colour ? kColourOff : "", printable(line));
}

}  // namespace

ShownPlan show_plan(const proto::TenancyPlanned& plan, bool colour) {
  ShownPlan out;
  std::map<proto::ChangeAction, std::size_t> counts;
  for (const proto::DocumentChange& change : plan.changes) {
    ++counts[change.action];
    if (change.action == proto::ChangeAction::unchanged) continue;
    const Mark mark = mark_of(change.action);
    out.text += fmt::format("{}{}{} {} {}\n", colour ? colour_on(mark.colour) : "", mark.sign,
                            colour ? kColourOff : "", change.kind, change.name);
    // The object itself is in the user's file.
    if (change.kind == tenancy::Manifest::kName) continue;
    std::size_t width = 0;
    for (const auto& field : change.changes) width = std::max(width, field.path.size());
    for (const auto& field : change.changes)
      out.text += field_line(field, std::min<std::size_t>(width, 40),
                             change.action == proto::ChangeAction::created);
  }
  out.changes = !out.text.empty();
  for (const proto::OverQuota& over : plan.over)
    out.text += fmt::format(
        "! {} holds {} {} and could hold {}: nothing is ended, but it starts nothing that needs "
        "more\n",
        over.name, tenancy::show_amount(over.resource, over.usage), cell_text(over),
        tenancy::show_amount(over.resource, over.limit));
  const auto count = [&](proto::ChangeAction action) { return counts[action]; };
  using enum proto::ChangeAction;
  out.text +=
      fmt::format("{} to create, {} to change, {} to remove, {} unchanged (revision {})\n",
                  count(created), count(changed), count(removed), count(unchanged), plan.revision);
  return out;
}

Result<bool> confirm(std::string_view question) {
  if (!is_terminal(stdin))
    return fail(ErrorCode::usage,
                "standard input is no terminal to ask at; say --yes to apply this plan");
  fmt::print("{} [y/N] ", question);
  std::fflush(stdout);
  std::string answer;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar())
    answer += static_cast<char>(c);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Result<std::optional<proto::TenancyPlanned>> carry_out(const Invocation& in, Session& session,
                                                       Change change, const PlanOptions& options) {
  proto::ApplyTenancy request;
  request.documents = std::move(change.documents);
  request.removals = std::move(change.removals);
  request.comment = options.comment;
  request.base_revision = change.revision;
  request.dry_run = true;
  ASSIGN(plan, session.call<proto::TenancyPlanned>(request));
  std::FILE* words = options.json ? stderr : stdout;  // standard output is for the JSON alone
  const bool colour = wants_colour(words);
  print_lines(words, "note", change.notes, Colour::cyan, colour);
  print_lines(words, "warning", plan->warnings, Colour::yellow, colour);
  const ShownPlan shown = show_plan(*plan, colour);
  if (!options.json) fmt::print("{}", shown.text);
  if (options.dry_run || !shown.changes) {
    if (options.json) fmt::print("{}\n", codec::to_json(*plan, codec::JsonStyle::pretty));
    return std::nullopt;
  }
  if (!options.yes) {
    ASSIGN(yes, confirm("Apply this?"));
    if (!*yes) {
      fmt::print(stderr, "{}: nothing was applied\n", in.program());
      return std::nullopt;
    }
  }
  request.dry_run = false;
  auto done = session.call<proto::TenancyPlanned>(request);
  if (!done) {
    if (done.error().code == ErrorCode::wrong_state)
      return fail(ErrorCode::wrong_state,
                  fmt::format("{}; nothing was applied", done.error().message));
    return tl::unexpected(done.error());
  }
  if (options.json)
    fmt::print("{}\n", codec::to_json(*done, codec::JsonStyle::pretty));
  else
    fmt::print("Applied as revision {}.\n", done->revision);
  return std::optional(std::move(*done));
}

Result<int> finish_change(const Invocation& in, Session& session, Change change,
                          const PlanOptions& options) {
  ASSIGN(done, carry_out(in, session, std::move(change), options));
  return 0;
}

Result<int> show_difference(Session& session, Change change, const PlanOptions& options) {
  ASSIGN(plan,
         session.call<proto::TenancyPlanned>(proto::ApplyTenancy{
             std::move(change.documents), std::move(change.removals), "", true, change.revision}));
  const ShownPlan shown = show_plan(*plan, wants_colour(stdout));
  if (options.json)
    fmt::print("{}\n", codec::to_json(*plan, codec::JsonStyle::pretty));
  else
    fmt::print("{}", shown.text);
  return shown.changes ? kSomethingDiffers : 0;
}

Result<proto::TenancyDocuments> present_documents(Session& session) {
  proto::GetTenancy get;
  get.with_nodes = true;
  return session.call<proto::TenancyDocuments>(get);
}

Result<std::string> kind_named(std::string_view text) {
  const auto lower = [](std::string_view from) {
    std::string out(from);
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
  };
  const std::string word = lower(text);
  std::vector<std::string> names;
  for (const std::string_view kind : tenancy::kind_names()) {
    const std::string name = lower(kind);
    const std::string plural = name.ends_with('y')    ? name.substr(0, name.size() - 1) + "ies"
                               : name.ends_with("ss") ? name + "es"
                                                      : name + "s";
    if (word == name || word == plural) return std::string(kind);
    names.push_back(name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return fail(ErrorCode::usage, fmt::format("there is no kind \"{}\"; use {}{}", text, all,
                                            did_you_mean(word, known)));
}

Result<std::uint64_t> parse_revision(std::string_view text) {
  ASSIGN(number, parse_integer("the revision", text, 1, INT64_MAX));
  return static_cast<std::uint64_t>(*number);
}

}  // namespace gantry::cli
