#include "cli/bill/focus.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "common/text/printable.h"
#include "common/time/time_zone.h"

namespace gantry::cli {
namespace {

constexpr std::string_view kHeader =
    "BilledCost,BillingAccountId,BillingAccountName,BillingCurrency,BillingPeriodEnd,"
    "BillingPeriodStart,ChargeCategory,ChargeClass,ChargeDescription,ChargeFrequency,"
    "ChargePeriodEnd,ChargePeriodStart,ConsumedQuantity,ConsumedUnit,ContractedCost,"
    "ContractedUnitPrice,EffectiveCost,InvoiceIssuerName,ListCost,ListUnitPrice,PricingCategory,"
    "PricingQuantity,PricingUnit,ProviderName,PublisherName,RegionId,RegionName,ResourceId,"
    "ResourceName,ResourceType,ServiceCategory,ServiceName,SkuId,SkuPriceId,SubAccountId,"
    "SubAccountName,Tags\n";
constexpr std::string_view kProvider = "Gantry";

struct Thing {
  std::string quantity;  // "" = none
  std::string_view unit, category, service;
};

Thing thing_of(const proto::LedgerRow& row) {
  const std::string& item = row.item;
  if (item == "cpu")
    return {format_hours(row.cpu, kThousandthsUnit), "Core-Hours", "Compute", "CPU"};
  if (item == "memory")
    return {format_hours(row.memory, kMebibyteUnit), "GiB-Hours", "Compute", "Memory"};
  if (item == "scratch")
    return {format_hours(row.scratch, kMebibyteUnit), "GiB-Hours", "Storage", "Scratch"};
  if (item == "io")
    return {format_hours(row.io, kThousandthsUnit), "GB/s-Hours", "Storage", "Disk rate"};
  if (item == "net")
    return {format_hours(row.net, kThousandthsUnit), "Gbit/s-Hours", "Networking", "Network rate"};
  if (item.starts_with("gpu:"))
    return {format_hours(row.gpu, kThousandthsUnit), "GPU-Hours", "Compute", "GPU"};
  if (item.starts_with("meter:"))
    return {format_hours(row.metered, kThousandthsUnit), "Units",
            item.find("storage") == std::string::npos ? "Other" : "Storage", "Metered"};
  return {"", "", "Management and Governance", "Shared costs"};
}

std::string utc(std::int64_t day) {
  const CivilDay civil = civil_of(day);
  return fmt::format("{:04}-{:02}-{:02}T00:00:00Z", civil.year, civil.month, civil.day);
}

std::pair<std::string, std::string> bounds_of(const std::string& period) {
  const auto number = [&](std::size_t at) {
    return static_cast<std::int32_t>(std::stol(period.substr(at)));
  };
  const std::int32_t year = number(0);
  if (period.size() == 8) {  // ISO week: the first week of a year contains 4 January
    std::int64_t monday = days_of({year, 1, 4});
    monday += 7 * (number(6) - 1) - (weekday_of(monday) + 6) % 7;
    return {utc(monday), utc(monday + 7)};
  }
  const std::int32_t month = number(5);
  return {utc(days_of({year, month, 1})),
          utc(days_of({month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1, 1}))};
}

// The price of one unit, to six decimal places; "" if there is no quantity.
std::string unit_price(Money cost, const std::string& quantity) {
  const double amount = quantity.empty() ? 0 : std::stod(quantity);
  if (amount <= 0) return "";
  return fmt::format("{:.6f}", static_cast<double>(cost.micros) / kMoneyUnit / amount);
}

std::string json_text(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

// Reads the labels of jobs as the controller writes them: "team=nlp,code=p7". In values each comma
// and each backslash is preceded by a backslash.
std::vector<std::pair<std::string, std::string>> labels_in(std::string_view line) {
  std::vector<std::pair<std::string, std::string>> out;
  std::string text;
  const auto end = [&] {
    const std::size_t sign = std::min(text.find('='), text.size());
    out.emplace_back(text.substr(0, sign), text.substr(std::min(sign + 1, text.size())));
    text.clear();
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ',') {
      end();
      continue;
    }
    if (line[i] == '\\' && i + 1 < line.size()) ++i;
    text += line[i];
  }
  if (!line.empty()) end();
  return out;
}

std::string tags_of(const proto::LedgerRow& row) {
  std::string out;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (value.empty()) return;
    out += out.empty() ? "{" : ",";
    out += json_text(key) + ":" + json_text(value);
  };
  add("user", row.user);
  add("job_type", row.job_type);
  add("pool", row.pool);
  add("plan", row.plan);
  for (const auto& [key, value] : labels_in(row.labels)) add("label:" + key, value);
  return out.empty() ? "{}" : out + "}";
}

std::string line_of(const proto::LedgerRow& row, const std::string& currency, bool credit) {
  const Thing thing = thing_of(row);
  const auto [start, end] = bounds_of(row.period);
  const Money cost = credit ? Money{} - row.credit : row.cost;
  const std::string money = format_money(cost, 6);
  const std::string quantity = credit ? "" : thing.quantity;
  const std::string unit = quantity.empty() ? "" : std::string(thing.unit);
  const std::string project = row.tenant + "/" + row.project;
  const std::string sku = row.item + (row.plan.empty() ? "" : "@" + row.plan);
  const std::array<std::string, 37> cells{
      money,
      row.tenant,
      row.tenant,
      currency,
      end,
      start,
      credit ? "Credit" : "Usage",
      "",
      credit ? "credited: " + row.item : row.item,
      row.item.starts_with("overhead:") ? "Recurring" : "Usage-Based",
      end,
      start,
      quantity,
      unit,
      money,
      unit_price(cost, quantity),
      money,
      std::string(kProvider),
      credit ? money : format_money(row.list, 6),
      unit_price(row.list, quantity),
      row.plan.empty() ? "Standard" : "Committed",
      quantity,
      unit,
      std::string(kProvider),
      std::string(kProvider),
      "",
      "",
      row.item,
      row.item,
      std::string(thing.service),
      std::string(thing.category),
      std::string(thing.service),
      row.item,
      sku,
      project,
      project,
      tags_of(row)};
  std::string out;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) out += ",";
    out += csv_cell(cell);
  }
  return out + "\n";
}

}  // namespace

std::string csv_cell(const std::string& raw) {
  std::string text = printable(raw);
  // A spreadsheet treats a cell that begins like this as a formula. Users choose the names of their
  // accounts and projects, so such a cell is prefixed with '.
  const bool number = text.find_first_not_of("+-.0123456789eE") == std::string::npos;
  if (!text.empty() && !number && std::string_view("=+-@").find(text[0]) != std::string_view::npos)
    text.insert(0, 1, '\'');
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string focus_csv(const proto::LedgerReply& reply, bool header) {
  std::string out(header ? kHeader : "");
  for (const proto::LedgerRow& row : reply.rows) {
    if (row.cost != Money{} || row.credit == Money{}) out += line_of(row, reply.currency, false);
    if (row.credit != Money{}) out += line_of(row, reply.currency, true);
  }
  return out;
}

}  // namespace gantry::cli
