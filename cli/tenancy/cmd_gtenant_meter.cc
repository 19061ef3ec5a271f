// gtenant meter: charges tenants for usage that was metered elsewhere (storage, network, licences).
#include <fmt/core.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/session.h"
#include "cli/table.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "common/job/verdict_text.h"
#include "common/text/text.h"
#include "config/tenancy/amounts.h"

namespace gantry::cli::gtenant_meter {
namespace {

constexpr std::size_t kMostFileBytes = 8u << 20;

// ---- CSV

struct MeterColumn {
  std::string_view name;
  std::string proto::MeterLine::*member;  // null: the amount
  bool required;
};
constexpr std::array<MeterColumn, 6> kMeterColumns{{{"date", &proto::MeterLine::date, true},
                                                    {"tenant", &proto::MeterLine::tenant, true},
                                                    {"meter", &proto::MeterLine::meter, true},
                                                    {"amount", nullptr, true},
                                                    {"project", &proto::MeterLine::project, false},
                                                    {"user", &proto::MeterLine::user, false}}};

Result<std::string> read_meter_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      path == "-" ? stdin : std::fopen(path.c_str(), "re"),
      [](std::FILE* f) { return f == stdin ? 0 : std::fclose(f); });
  if (!file)
    return fail(ErrorCode::io_error,
                fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  std::string text;
  std::array<char, 65536> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    text.append(buffer.data(), n);
    if (text.size() > kMostFileBytes)
      return fail(
          ErrorCode::limit_exceeded,
          fmt::format("{}: has more than {} MiB; import it in parts", path, kMostFileBytes >> 20));
  }
  return text;
}

// The cells of a line, with or without double quotes. Names and numbers need no quotes, so only
// quotes around a whole cell are understood, and a cell cannot contain a line feed.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      out.back() += line[i++];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out.emplace_back();
    else
      out.back() += c;
  }
  for (std::string& cell : out) {
    const std::size_t first = cell.find_first_not_of(" \t");
    cell = first == std::string::npos
               ? ""
               : cell.substr(first, cell.find_last_not_of(" \t\r") + 1 - first);
    if (cell == "\r") cell.clear();
  }
  return out;
}

class MeterFile {
 public:
  explicit MeterFile(std::string path) : path_(std::move(path)) {}

  Result<std::vector<proto::MeterLine>> read(std::string_view text) {
    while (!text.empty()) {
      ++number_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.find_first_not_of(" \t\r") == std::string_view::npos || line.front() == '#')
        continue;
      TRY(columns_.empty() ? head(line) : row(line));
    }
    if (lines_.empty())
      return fail(ErrorCode::invalid_argument, fmt::format("{}: has no lines", path_));
    return std::move(lines_);
  }

 private:
  tl::unexpected<Error> wrong(std::string_view what) const {
    return fail(ErrorCode::invalid_argument, fmt::format("{}:{}: {}", path_, number_, what));
  }

  Result<void> head(std::string_view line) {
    for (const std::string& name : cells_of(line)) {
      const auto it = std::find_if(kMeterColumns.begin(), kMeterColumns.end(),
                                   [&](const MeterColumn& c) { return c.name == name; });
      if (it == kMeterColumns.end())
        return wrong(
            fmt::format("there is no column \"{}\"; use date, tenant, meter, amount, "
                        "project and user",
                        name));
      if (std::find(columns_.begin(), columns_.end(), &*it) != columns_.end())
        return wrong(fmt::format("column {} is there twice", name));
      columns_.push_back(&*it);
    }
    for (const MeterColumn& column : kMeterColumns)
      if (column.required && std::find(columns_.begin(), columns_.end(), &column) == columns_.end())
        return wrong(
            fmt::format("column {} is missing: the first line names the columns", column.name));
    return {};
  }

  Result<void> row(std::string_view line) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() != columns_.size())
      return wrong(fmt::format("has {}; columns: {}",
                               counted(static_cast<std::int64_t>(cells.size()), "cell"),
                               columns_.size()));
    proto::MeterLine out;
    out.line = number_;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const MeterColumn& column = *columns_[i];
      if (column.required && cells[i].empty())
        return wrong(fmt::format("{} is missing", column.name));
      if (column.member != nullptr) {
        out.*column.member = cells[i];
        continue;
      }
      const bool minus = cells[i].front() == '-';
      const auto amount = tenancy::parse_thousandths(cells[i].substr(minus ? 1 : 0));
      if (!amount) return wrong(fmt::format("amount: {}", amount.error().message));
      out.amount = minus ? -amount->value() : amount->value();
    }
    lines_.push_back(std::move(out));
    return {};
  }

  std::string path_;
  std::uint32_t number_ = 0;
  std::vector<const MeterColumn*> columns_;
  std::vector<proto::MeterLine> lines_;
};

std::string digest_of(std::string_view text) {
  std::array<unsigned char, 16> hash;
  crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), nullptr, 0);
  std::string out;
  for (const unsigned char byte : hash) out += fmt::format("{:02x}", byte);
  return out;
}

// ---- import

struct ImportOptions {
  std::string batch;
  bool check = false;
  bool json = false;
};

constexpr Option kImportOptions[] = {
    takes("batch", "NAME", "What it is called; the file's name unless given",
          put<&ImportOptions::batch>),
    flag("check", "Only say what it comes to", put<&ImportOptions::check>),
    flag("json", "As JSON", put<&ImportOptions::json>),
};

Result<int> run_import(const Invocation& in) {
  ImportOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  const std::string& path = (*operands)->front();
  if (path == "-" && options.batch.empty())
    return fail(ErrorCode::usage, "of standard input --batch has to say what it is called");
  ASSIGN(text, read_meter_file(path));
  ASSIGN(lines, MeterFile(path).read(*text));
  proto::ImportMeter import;
  import.name =
      options.batch.empty() ? std::filesystem::path(path).filename().string() : options.batch;
  import.digest = digest_of(*text);
  import.check = options.check;
  import.lines = std::move(*lines);
  const auto reply = ask<proto::MeterReply>(in.program(), import);
  if (!reply) return fail(reply.error().code, fmt::format("{}: {}", path, reply.error().message));
  if (options.json) return print_pretty(*reply);
  for (const proto::PostedBatch& batch : reply->batches) {
    const std::string sum = fmt::format("{}, {} {}", counted(batch.lines, "line"),
                                        format_money(batch.cost), reply->currency);
    if (reply->again)
      fmt::print("{}: imported already at {} by {}, {}: nothing was charged\n", batch.name,
                 format_time(batch.at), batch.by, sum);
    else
      fmt::print("{}: {}, {}\n", batch.name, sum,
                 options.check ? "nothing was charged" : "charged");
  }
  return 0;
}

// ---- list

struct MeterListOptions {
  bool json = false;
  bool no_header = false;
  std::string format;
};

constexpr Option kMeterListOptions[] = {
    takes("format", 'o', "FORMAT", "Columns, such as \"%n %c\"", put<&MeterListOptions::format>),
    flag("json", "As JSON", put<&MeterListOptions::json>),
    flag("noheader", 'h', "No line of headers", put<&MeterListOptions::no_header>),
};

using OfPostedBatch = const proto::PostedBatch&;
constexpr Column<proto::PostedBatch> kBatchColumns[] = {
    {'t', "Time", "TIME", [](Out o, OfPostedBatch b) { o += format_time(b.at); }},
    {'n', "Batch", "BATCH", [](Out o, OfPostedBatch b) { o += b.name; }},
    {'u', "By", "BY", [](Out o, OfPostedBatch b) { o += b.by.empty() ? "-" : b.by; }},
    {'l', "Lines", "LINES", [](Out o, OfPostedBatch b) { o += std::to_string(b.lines); }},
    {'c', "Cost", "COST", [](Out o, OfPostedBatch b) { o += format_money(b.cost); }},
    {'d', "Digest", "DIGEST", [](Out o, OfPostedBatch b) { o += b.digest; }}};
constexpr std::string_view kBatchFormat = "%t %n %u %.7l %.14c";

Result<int> run_meter_list(const Invocation& in) {
  MeterListOptions options;
  OPERANDS(operands, in, &options, 0, 0);
  const std::span<const Column<proto::PostedBatch>> columns(kBatchColumns);
  ASSIGN(layout, parse_format(options.format.empty() ? kBatchFormat : options.format,
                              infos(columns), options.format.empty()));
  ASSIGN(reply, ask<proto::MeterReply>(in.program(), proto::ListMeters{}));
  if (options.json) return print_pretty(*reply);
  TableWriter table(std::move(*layout), {.header = !options.no_header}, stdout);
  for (const proto::PostedBatch& batch : reply->batches) add_row(table, columns, batch);
  return 0;
}

const Command kMeterImport{
    {"import", "Charge what was metered elsewhere", "FILE"},
    {.description =
         "FILE (- is standard input) is CSV; its first line names the columns: date (2026-11-30), "
         "tenant, meter, amount (up to three places), and project and user if they are to be kept "
         "apart. Prices are those of `meters` in the price book of that day. All lines are "
         "charged, or none. A batch is charged once: importing the same file again does nothing, "
         "another file of its name is refused. A correction is a batch of its own; its amounts may "
         "be negative.",
     .options = kImportOptions,
     .examples = {{"gtenant meter import --check storage-2026-11.csv", "What it comes to"},
                  {"gtenant meter import storage-2026-11.csv", "Charges it, once"},
                  {"gtenant meter list",
                   "What was imported, and shared costs of months that are over"}},
     .run = run_import}};
const Command kMeterList{
    {"list", "List what was imported"},
    {.description = "Fields of -o: %t time, %n batch, %u who imported it, %l "
                    "lines, %c cost, %d digest of the file.",
     .options = kMeterListOptions,
     .examples = {{"gtenant meter import --check storage-2026-11.csv", "What it comes to"},
                  {"gtenant meter import storage-2026-11.csv", "Charges it, once"},
                  {"gtenant meter list",
                   "What was imported, and shared costs of months that are over"}},
     .run = run_meter_list}};
constexpr const Command* kMeterSub[] = {&kMeterImport, &kMeterList};

}  // namespace

const Command kTenantMeter{
    {"meter",
     "Charge storage and other things metered elsewhere: import, "
     "list"},
    {.description = "docs/money.md explains it with an example.",
     .examples = {{"gtenant meter import --check storage-2026-11.csv", "What it comes to"},
                  {"gtenant meter import storage-2026-11.csv", "Charges it, once"},
                  {"gtenant meter list",
                   "What was imported, and shared costs of months that are over"}},
     .sub = kMeterSub}};

}  // namespace gantry::cli::gtenant_meter
