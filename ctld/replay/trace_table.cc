// Reads traces that are tables: CSV with a header, JSON lists, and the output of `gacct --json`.
#include <fmt/core.h>

#include <algorithm>

#include "common/codec/json_io.h"
#include "ctld/replay/trace.h"

namespace gantry::replay {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

// The values of a line; nullopt if a quote is not closed. Inside quotes "" stands for a quote (RFC
// 4180).
std::optional<std::vector<std::string>> cells_of(std::string_view line, char separator) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at <= line.size(); ++at) {
    while (at < line.size() && line[at] == ' ') ++at;
    std::string cell;
    if (at < line.size() && line[at] == '"') {
      for (++at; at < line.size() && (line[at] != '"' || line.substr(at, 2) == "\"\""); ++at) {
        cell += line[at];
        if (line[at] == '"') ++at;
      }
      if (at >= line.size()) return std::nullopt;
      at = std::min(line.find(separator, at), line.size());
    } else {
      const std::size_t end = std::min(line.find(separator, at), line.size());
      cell = trimmed(line.substr(at, end - at));
      at = end;
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

// The separator of the header: the first of these characters that is in it.
char separator_of(std::string_view header) {
  const std::size_t at = header.find_first_of(",;\t");
  return at == std::string_view::npos ? ',' : header[at];
}

// The field of each column; "" = not used.
Result<std::vector<std::string>> columns_of(const std::vector<std::string>& header, Trace& trace,
                                            std::int64_t line) {
  std::vector<std::string> columns;
  std::string unused;
  for (const std::string& cell : header) {
    const auto field = field_of(cell);
    if (!field) return wrong_line(trace.name, line, cell, no_such_field(cell));
    if (!field->empty() && std::find(columns.begin(), columns.end(), *field) != columns.end())
      return wrong_line(trace.name, line, cell,
                        fmt::format("there is another column for {}", *field));
    if (field->empty() && !cell.empty()) unused += (unused.empty() ? "" : ", ") + cell;
    columns.emplace_back(*field);
  }
  const auto has = [&](std::string_view name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  if (!has("submit")) return wrong_line(trace.name, line, "submit", "there is no such column");
  if (!has("run") && !(has("began") && has("ended")))
    return wrong_line(trace.name, line, "run", "there is no such column");
  if (!has("gpus") && !has("cpus"))
    return wrong_line(trace.name, line, "gpus", "there is no such column, and none of cpus");
  if (!unused.empty()) trace.notes.push_back(fmt::format("columns that are not used: {}", unused));
  return columns;
}

// Reads the objects of a list one after the other, with their line numbers. A list of millions is
// not parsed as a single JSON text.
class Objects {
 public:
  explicit Objects(std::string_view text) : text_(text) {}

  // Moves past the '[' of the outer list, or of "rows". Objects without a list are accepted too.
  bool open() {
    while (at_ < text_.size() && is_blank(text_[at_])) step();
    if (at_ < text_.size() && text_[at_] == '[') return step(), true;
    const std::size_t rows = text_.find("\"rows\"");
    if (rows == std::string_view::npos)
      return one_by_one_ = at_ < text_.size() && text_[at_] == '{';
    const std::size_t list = text_.find_first_not_of(" \t\r\n:", rows + 6);
    if (list == std::string_view::npos || text_[list] != '[') return false;
    while (at_ <= list) step();
    return true;
  }
  // The text of the next object; "" at the end of the list, or if the list contains something else.
  std::string_view next() {
    while (at_ < text_.size() && (is_blank(text_[at_]) || text_[at_] == ',')) step();
    line_of_object = line_;
    if (at_ >= text_.size() || text_[at_] != '{') return {};
    const std::size_t from = at_;
    int depth = 0;
    bool quoted = false;
    for (; at_ < text_.size(); step()) {
      const char c = text_[at_];
      if (quoted) {
        if (c == '\\') step();
        if (c == '"') quoted = false;
        continue;
      }
      if (c == '"') quoted = true;
      depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      if (depth == 0) {
        step();
        return text_.substr(from, at_ - from);
      }
    }
    return text_.substr(from);
  }
  [[nodiscard]] bool ended() const {
    return one_by_one_ ? at_ >= text_.size() : at_ < text_.size() && text_[at_] == ']';
  }
  std::int64_t line_of_object = 1;

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  void step() {
    if (at_ < text_.size() && text_[at_] == '\n') ++line_;
    ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  bool one_by_one_ = false;
};

std::optional<std::int64_t> integer(codec::JsonNode object, std::string_view name) {
  const auto member = object.find(name);
  return member ? member->sint() : std::nullopt;
}
std::string text_of(codec::JsonNode object, std::string_view name) {
  const auto member = object.find(name);
  const auto text = member ? member->string() : std::nullopt;
  return text ? std::string(*text) : std::string();
}

// Reads a row of `gacct --json`. A job that has run is replayed with what it held and as long as it
// ran. Jobs that never started, or that still run, are left out.
Result<std::optional<TraceJob>> history_job(codec::JsonNode row, const std::string& name,
                                            std::int64_t line) {
  const auto submitted = integer(row, "submitted");
  if (!submitted) return wrong_line(name, line, "submitted", "is missing, or no time");
  const auto started = integer(row, "started"), ended = integer(row, "ended");
  if (!started || !ended) return std::optional<TraceJob>{};
  TraceJob job;
  job.line = line;
  job.id = static_cast<std::uint64_t>(integer(row, "job").value_or(0));
  job.submit = Instant{integer(row, "eligible").value_or(*submitted)};
  if (job.submit.us <= 0) job.submit = Instant{*submitted};
  job.run = Instant{*ended} - Instant{*started};
  job.logged_wait = Instant{*started} - job.submit;
  if (const auto limit = integer(row, "time_limit"))
    job.limit = Duration{*limit};
  else
    job.unlimited = true;
  job.cpus =
      static_cast<std::uint32_t>(std::max<std::int64_t>(0, integer(row, "cpus").value_or(0)));
  job.gpus =
      static_cast<std::uint32_t>(std::max<std::int64_t>(0, integer(row, "gpus").value_or(0)));
  job.nodes =
      static_cast<std::uint32_t>(std::max<std::int64_t>(1, integer(row, "nodes").value_or(1)));
  job.memory = integer(row, "memory_per_node").value_or(0);
  job.tenant = text_of(row, "partition");
  job.project = text_of(row, "account");
  job.user = text_of(row, "user");
  job.priority_class = text_of(row, "priority_class");
  return std::optional(std::move(job));
}

Result<TraceJob> plain_job(codec::JsonNode object, const std::string& name, std::int64_t line) {
  TraceJob job;
  job.line = line;
  bool submitted = false;
  for (std::size_t i = 0; i < object.size(); ++i) {
    const std::string name_of(object.name(i));
    const auto field = field_of(name_of);
    if (!field) return wrong_line(name, line, name_of, no_such_field(name_of));
    const codec::JsonNode value = object.member(i);
    std::string text;
    if (const auto s = value.string())
      text = *s;
    else if (const auto n = value.sint())
      text = fmt::format("{}", *n);
    else if (const auto r = value.real())
      text = fmt::format("{}", *r);
    else if (!value.is_null() && !field->empty())
      return wrong_line(name, line, name_of, "must be a number or a text");
    if (field->empty()) continue;
    submitted |= *field == "submit" && !is_missing(text);
    if (auto set = set_field(job, *field, text); !set)
      return wrong_line(name, line, name_of, set.error().message);
  }
  if (!submitted) return wrong_line(name, line, "submit", "is missing");
  return job;
}

}  // namespace

Result<Trace> parse_csv(std::string_view text, const std::string& name) {
  Trace trace;
  trace.name = name;
  std::vector<std::string> columns;
  char separator = ',';
  std::int64_t line_number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (trimmed(line).empty() || trimmed(line).front() == '#') continue;
    if (columns.empty()) separator = separator_of(line);
    auto cells = cells_of(line, separator);
    if (!cells) return wrong_line(name, line_number, "", "a quote is not closed on its line");
    if (columns.empty()) {
      ASSIGN(read, columns_of(*cells, trace, line_number));
      columns = std::move(*read);
      continue;
    }
    while (cells->size() > columns.size() && cells->back().empty()) cells->pop_back();
    if (cells->size() != columns.size())
      return wrong_line(
          name, line_number, "",
          fmt::format("{} values, and the header names {} columns", cells->size(), columns.size()));
    TraceJob job;
    job.id = trace.jobs.size() + 1;
    job.line = line_number;
    for (std::size_t i = 0; i < cells->size(); ++i) {
      if (columns[i].empty()) continue;
      if (columns[i] == "submit" && is_missing((*cells)[i]))
        return wrong_line(name, line_number, columns[i], "is missing");
      if (auto set = set_field(job, columns[i], (*cells)[i]); !set)
        return wrong_line(name, line_number, columns[i], set.error().message);
    }
    trace.jobs.push_back(std::move(job));
  }
  return trace;
}

Result<Trace> parse_json(std::string_view text, const std::string& name) {
  Trace trace;
  trace.name = name;
  Objects objects(text);
  if (!objects.open())
    return wrong_line(
        name, 1, "", "must be a list of jobs, or what `gacct --json` prints (an object with rows)");
  std::size_t not_run = 0;
  for (std::string_view object = objects.next(); !object.empty(); object = objects.next()) {
    const std::int64_t line = objects.line_of_object;
    const auto document = codec::JsonDocument::parse(object);
    if (!document) return wrong_line(name, line, "", document.error().message);
    const codec::JsonNode root = document->root();
    const auto row = root.find("row");
    if (row || root.find("submitted")) {
      ASSIGN(job, history_job(row ? *row : root, name, line));
      if (!*job)
        ++not_run;
      else
        trace.jobs.push_back(std::move(**job));
      continue;
    }
    ASSIGN(job, plain_job(root, name, line));
    if (job->id == 0) job->id = trace.jobs.size() + 1;
    trace.jobs.push_back(std::move(*job));
  }
  if (!objects.ended())
    return wrong_line(name, objects.line_of_object, "", "must be an object, or the list's end");
  if (not_run > 0)
    trace.notes.push_back(fmt::format("{} jobs that have not ended were left out", not_run));
  return trace;
}

}  // namespace gantry::replay
