// gtenant price: what things cost. Price books are documents like others. These commands accept no
// other documents, so that the person who maintains prices can be given a file of prices alone.
#include <fmt/core.h>

#include <algorithm>

#include "cli/table.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/files/load.h"
#include "config/tenancy/write.h"

namespace gantry::cli::gtenant_price {
namespace {

using tenancy::PriceBook;

struct PriceOptions : PlanOptions {
  std::vector<std::string> files;
};

Result<void> add_price_file(PriceOptions& options, std::string_view path) {
  if (path.empty() || path == "-") return fail(ErrorCode::usage, "-f needs the name of a file");
  options.files.emplace_back(path);
  return {};
}

constexpr Option kPriceFileOption[] = {
    takes("filename", 'f', "FILE|DIR", "Price books (docs/money.md); may be given several times",
          call<add_price_file>),
};

Result<Change> price_change(Session& session, const PriceOptions& options) {
  if (options.files.empty())
    return fail(ErrorCode::usage, "no file is given; use -f FILE or -f DIR");
  ASSIGN(present, present_documents(session));
  tenancy::LoadOptions load;
  load.known = present->documents;
  load.nodes = &present->nodes;
  ASSIGN(loaded, tenancy::load_documents(options.files, load));
  for (const tenancy::Document& document : loaded->documents)
    if (!std::holds_alternative<PriceBook>(document))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} {} is no price book; gtenant apply takes every kind",
                              kind_of(document), name_of(document)));
  Change change;
  change.documents = std::move(loaded->documents);
  change.notes = std::move(loaded->notes);
  change.revision = present->revision;
  return change;
}

// ---- list

struct PriceLine {
  std::string book, from, what, price, unit;
};

using OfPriceLine = const PriceLine&;
constexpr Column<PriceLine> kPriceColumns[] = {
    {'b', "Book", "BOOK", [](Out o, OfPriceLine p) { o += p.book; }},
    {'f', "From", "FROM", [](Out o, OfPriceLine p) { o += p.from; }},
    {'w', "What", "WHAT", [](Out o, OfPriceLine p) { o += p.what; }},
    {'p', "Price", "PRICE", [](Out o, OfPriceLine p) { o += p.price; }},
    {'u', "Unit", "PER", [](Out o, OfPriceLine p) { o += p.unit; }}};
constexpr std::string_view kPriceFormat = "%b %f %w %.10p %u";

std::string words_of(const tenancy::PricePlan& plan) {
  std::string out;
  for (const auto& [word, names] :
       {std::pair("class", &plan.classes), std::pair("project", &plan.projects),
        std::pair("tenant", &plan.tenants), std::pair("tier", &plan.tiers),
        std::pair("sandbox", &plan.sandboxes)})
    for (const std::string& name : *names)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", word, name);
  return out.empty() ? "nobody" : out;
}

std::vector<PriceLine> lines_of(const PriceBook& book, const std::string& currency) {
  std::vector<PriceLine> out;
  const auto add = [&](std::string what, std::string price, std::string unit) {
    out.push_back({book.name, book.from.empty() ? "always" : book.from, std::move(what),
                   std::move(price), std::move(unit)});
  };
  for (const auto& [key, price] : book.gpu) {
    const std::size_t colon = key.find(':');
    const std::string_view thing = colon == std::string::npos       ? "GPU"
                                   : key.substr(colon) == ":shared" ? "share"
                                                                    : "slice";
    add("gpu " + key, format_money(price), fmt::format("{}, {}-hour", currency, thing));
  }
  for (const auto& [what, price, unit] :
       {std::tuple("cpu", book.cpu, "core"), std::tuple("memory", book.memory, "GiB"),
        std::tuple("scratch", book.scratch, "GiB"), std::tuple("io", book.io, "GB/s"),
        std::tuple("net", book.net, "Gbit/s")})
    if (price.micros != 0)
      add(what, format_money(price), fmt::format("{}, {}-hour", currency, unit));
  for (const auto& [name, price] : book.meters) add("meter " + name, format_money(price), currency);
  for (const auto& [name, cost] : book.overhead)
    add("overhead " + name, format_money(cost), currency + ", month, shared by all");
  for (const tenancy::PricePlan& plan : book.plans)
    add("plan " + plan.name, "x " + tenancy::show_thousandths(plan.factor), words_of(plan));
  for (const tenancy::PriceHours& hours : book.hours) {
    std::string days;
    for (const std::string& day : hours.days) days += (days.empty() ? " on " : ", ") + day;
    add("hours " + hours.name, "x " + tenancy::show_thousandths(hours.factor),
        fmt::format("{} to {}{}", format_time_of_day(hours.from), format_time_of_day(hours.until),
                    days));
  }
  return out;
}

struct PriceListOptions {
  bool json = false;
  bool no_header = false;
};

constexpr Option kPriceListOptions[] = {
    flag("json", "As JSON", put<&PriceListOptions::json>),
    flag("noheader", 'n', "No line of headers", put<&PriceListOptions::no_header>),
};

Result<int> run_price_list(const Invocation& in) {
  PriceListOptions options;
  OPERANDS(operands, in, &options, 0, 0);
  proto::GetTenancy get;
  get.kinds = {std::string(PriceBook::kName)};
  ASSIGN(reply, ask<proto::TenancyDocuments>(in.program(), get));
  if (options.json) return print_pretty(*reply);
  std::vector<PriceBook> books;
  std::string currency;
  for (const tenancy::Document& document : reply->documents) {
    books.push_back(std::get<PriceBook>(document));
    if (currency.empty()) currency = books.back().currency;
  }
  if (books.empty()) {
    fmt::print(stderr, "{}: there are no prices; gtenant price apply -f FILE\n", in.program());
    return 0;
  }
  std::sort(books.begin(), books.end(),
            [](const PriceBook& a, const PriceBook& b) { return a.from < b.from; });
  const std::span<const Column<PriceLine>> columns(kPriceColumns);
  const auto known = infos(columns);
  ASSIGN(layout, parse_format(kPriceFormat, known, true));
  TableWriter table(std::move(*layout), {.header = !options.no_header}, stdout);
  for (const PriceBook& book : books)
    for (const PriceLine& line : lines_of(book, currency)) add_row(table, columns, line);
  return 0;
}

constexpr auto kPriceApplyOptions = join(kPriceFileOption, kPlanOptions);
constexpr auto kPriceDiffOptions = join(kPriceFileOption, kJsonOption);

const Command kPriceApply{
    {"apply", "Create and change price books from files"},
    {.description =
         "Shows what would change, asks, and applies all of it or nothing. What was charged until "
         "then stays as it is; jobs that run are charged the new prices from then on.",
     .options = kPriceApplyOptions,
     .examples = {{"gtenant price apply -f prices.yaml", "Shows what changes, and asks"}},
     .run = run_change<PriceOptions, price_change, false>}};
const Command kPriceList{
    {"list", "List the prices, by the date from which they count"},
    {.options = kPriceListOptions,
     .examples = {{"gtenant price list", "The books, and which one is in force"}},
     .run = run_price_list}};
const Command kPriceDiff{
    {"diff", "Show what price apply would change"},
    {.options = kPriceDiffOptions,
     .examples = {{"gtenant price diff -f prices.yaml", "What apply would change"}},
     .exits = {{"0", "nothing would change"},
               {"1", "a file is wrong, or no answer"},
               {"2", "the command line is wrong"},
               {"3", "something would change"}},
     .run = run_change<PriceOptions, price_change, true>}};
constexpr const Command* kPriceSub[] = {&kPriceApply, &kPriceList, &kPriceDiff};

}  // namespace

const Command kTenantPrice{
    {"price", "What an hour of each thing costs: apply, list and diff"},
    {.description = "docs/money.md explains price books with examples.",
     .examples = {{"gtenant price apply -f prices.yaml",
                   "New prices, after a look at what changes"},
                  {"gtenant price list", "What an hour of each thing costs"}},
     .sub = kPriceSub}};

}  // namespace gantry::cli::gtenant_price
