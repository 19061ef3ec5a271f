#include "cli/bill/invoice.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "common/text/printable.h"
#include "common/time/time_zone.h"

namespace gantry::cli {
namespace {

struct Group {
  Held held;
  Money cost, credit;
};

std::string_view unit_word(const std::string& item) {
  if (item == "cpu") return "core-hours";
  if (item == "memory" || item == "scratch") return "GiB-hours";
  if (item == "io") return "GB/s-hours";
  if (item == "net") return "Gbit/s-hours";
  if (item.starts_with("meter:")) return "units";
  return item.starts_with("overhead:") ? "" : "GPU-hours";
}

std::int64_t unit_of(const std::string& item) {
  return item == "memory" || item == "scratch" ? kMebibyteUnit : kThousandthsUnit;
}

// The cost of an hour, to the nearest ten-thousandth; "-" for less than a thousandth of an hour.
std::string average(const Group& group, std::int64_t unit) {
  const std::int64_t hours = thousandths_of_hours(group.held, unit);
  if (hours <= 0) return "-";
  const __int128 price = (static_cast<__int128>(group.cost.micros) * 1000 + hours / 2) / hours;
  return format_money(Money{static_cast<std::int64_t>(price)}, 4);
}

std::string item_name(std::string item) {
  for (const std::string_view kind : {"meter:", "overhead:"})
    if (item.starts_with(kind)) return item.substr(kind.size());
  std::replace(item.begin(), item.end(), ':', ' ');
  return item;
}

// The digest FNV-1a of 64 bits; half of its bits are shown.
class Digest {
 public:
  void add(std::string_view text) {
    for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    value_ = (value_ ^ 0xff) * 0x100000001b3;
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{:08x}", static_cast<std::uint32_t>(value_ ^ (value_ >> 32)));
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

// The first day (days since 1970) of a month or an ISO week, and the first one after it.
std::pair<std::int64_t, std::int64_t> days_of_period(const std::string& period) {
  const auto number = [&](std::size_t at, std::size_t length) {
    return static_cast<std::int32_t>(std::stol(period.substr(at, length)));
  };
  const std::int32_t year = number(0, 4);
  if (period.size() == 8) {  // ISO week: the first week of a year contains 4 January
    std::int64_t monday = days_of({year, 1, 4});
    monday -= (weekday_of(monday) + 6) % 7;
    return {monday + 7 * (number(6, 2) - 1), monday + 7 * number(6, 2)};
  }
  const std::int32_t month = number(5, 2);
  return {days_of({year, month, 1}),
          days_of({month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1, 1})};
}

std::string date_of(std::int64_t day) {
  const CivilDay civil = civil_of(day);
  return fmt::format("{:04}-{:02}-{:02}", civil.year, civil.month, civil.day);
}

// After this many days a period has ended in every time zone, and its shared costs are posted.
constexpr std::int64_t kDaysToClose = 2;

// "1234567.50" as "1,234,567.50"
std::string grouped(std::string amount) {
  const std::size_t first = amount.starts_with('-') ? 1 : 0;
  std::size_t at = std::min(amount.find('.'), amount.size());
  while (at > first + 3) amount.insert(at -= 3, ",");
  return amount;
}

std::vector<InvoiceLine> lines_of(const std::map<std::string, Group>& groups) {
  std::vector<InvoiceLine> out;
  for (const auto& [name, group] : groups)
    out.push_back({name.empty() ? "-" : name, "", "", group.cost, group.credit});
  return out;
}

}  // namespace

std::string shown_amount(const Invoice& invoice, Money money) {
  return invoice.exact ? format_money(money, 6) : grouped(format_money(money, 2));
}

Invoice make_invoice(const std::string& tenant, const std::string& period,
                     const std::string& cluster, const proto::LedgerReply& reply) {
  Invoice out;
  out.issuer = reply.issuer.empty() ? "cluster " + cluster : reply.issuer;
  out.tenant = tenant;
  out.period = period;
  out.currency = reply.currency.empty() ? "-" : reply.currency;
  out.zone = reply.tenant_zone.empty() ? reply.zone : reply.tenant_zone;
  const auto [first, after] = days_of_period(period);
  out.first = date_of(first);
  out.last = date_of(after - 1);
  out.date = date_of(after);
  out.final = reply.now.us / 1'000'000 >= (after + kDaysToClose) * 86'400;
  std::map<std::string, Group> items, projects, users;
  Digest digest;
  for (const std::string& text : {tenant, period, reply.currency}) digest.add(text);
  for (const proto::LedgerRow& row : reply.rows) {
    for (auto* group : {&items[row.item], &projects[row.project], &users[row.user]}) {
      group->cost += row.cost;
      group->credit += row.credit;
    }
    if (out.cost_center.empty()) out.cost_center = row.label;
    if (const auto held = proto::held_member(row.item))
      add_held(items[row.item].held, row.*held, unit_of(row.item));
    out.cost += row.cost;
    out.credit += row.credit;
    for (const std::string& text :
         {row.project, row.user, row.item, format_money(row.cost), format_money(row.credit)})
      digest.add(text);
  }
  for (const auto& [item, group] : items)
    out.items.push_back(
        {item_name(item),
         unit_word(item).empty()
             ? "shared"
             : fmt::format("{} {}", format_hours(group.held, unit_of(item)), unit_word(item)),
         average(group, unit_of(item)), group.cost, group.credit});
  out.projects = lines_of(projects);
  out.users = lines_of(users);
  out.number = fmt::format("{}-{}-{}", tenant, period, digest.text());
  return out;
}

std::vector<std::pair<std::string, std::string>> invoice_head(const Invoice& invoice) {
  std::vector<std::pair<std::string, std::string>> out{
      {"Number", invoice.number},
      {"From", invoice.issuer},
      {"To", invoice.tenant},
      {"Cost centre", invoice.cost_center.empty() ? "-" : invoice.cost_center},
      {"Date", invoice.final ? invoice.date : "provisional: the period is not over"},
      {"Period", fmt::format("{}, {} to {}", invoice.period, invoice.first, invoice.last)},
      {"Time zone", invoice.zone.empty() ? "UTC" : invoice.zone},
      {"Currency", invoice.currency}};
  return out;
}

std::string invoice_foot(const Invoice& invoice) {
  if (invoice.exact) return "All amounts are exact to the millionth.";
  return "Each amount is rounded by itself to two decimals from its exact value, so a column may "
         "differ from its sum by a cent. greport --exact shows the exact values.";
}

namespace {

std::string for_html(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string section(const Invoice& invoice, std::string_view title,
                    const std::vector<InvoiceLine>& lines, bool amounts) {
  std::string out = fmt::format("<h2>{}</h2>\n<table><tr><th>{}</th>", title, title);
  if (amounts) out += "<th class=n>amount</th><th class=n>average price</th>";
  out += "<th class=n>cost</th><th class=n>credit</th><th class=n>net</th></tr>\n";
  for (const InvoiceLine& line : lines) {
    out += fmt::format("<tr><td>{}</td>", for_html(line.what));
    if (amounts)
      out += fmt::format("<td class=n>{}</td><td class=n>{}</td>", for_html(line.amount),
                         for_html(line.average));
    out += fmt::format("<td class=n>{}</td><td class=n>{}</td><td class=n>{}</td></tr>\n",
                       shown_amount(invoice, line.cost), shown_amount(invoice, line.credit),
                       shown_amount(invoice, line.cost - line.credit));
  }
  return out + "</table>\n";
}

// A bar chart of what each line costs; the longest bar is 300 wide.
std::string chart(const Invoice& invoice, const std::vector<InvoiceLine>& lines) {
  Money most{1};
  for (const InvoiceLine& line : lines) most = std::max(most, line.cost);
  std::string out = fmt::format("<svg width=640 height={} role=img aria-label=\"cost\">\n",
                                lines.size() * 24 + 4);
  std::size_t y = 4;
  for (const InvoiceLine& line : lines) {
    const auto width =
        static_cast<std::int64_t>(static_cast<__int128>(line.cost.micros) * 300 / most.micros);
    out += fmt::format(
        "<text x=150 y={} text-anchor=end>{}</text><rect x=160 y={} width={} height=16 />"
        "<text x={} y={}>{}</text>\n",
        y + 13, for_html(line.what), y, std::max<std::int64_t>(width, 1),
        168 + std::max<std::int64_t>(width, 1), y + 13, shown_amount(invoice, line.cost));
    y += 24;
  }
  return out + "</svg>\n";
}

constexpr std::string_view kStyle =
    "body{font:15px/1.5 sans-serif;max-width:760px;margin:40px auto;color:#1a1a1a}"
    "table{border-collapse:collapse;width:100%}th,td{padding:4px 8px;text-align:left;"
    "border-bottom:1px solid #ddd}.n{text-align:right;font-variant-numeric:tabular-nums}"
    "h1{margin-bottom:0}h2{font-size:17px;margin-top:28px;text-transform:capitalize}"
    "rect{fill:#2f6f9f}text{font:13px sans-serif}.total{font-size:19px;font-weight:bold}";

}  // namespace

std::string invoice_page(const Invoice& invoice) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>Invoice {}</title>"
      "<style>{}</style></head><body>\n<h1>Invoice</h1>\n<table>",
      for_html(invoice.number), kStyle);
  for (const auto& [name, value] : invoice_head(invoice))
    out += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", name, for_html(value));
  out += "</table>\n";
  out += section(invoice, "items", invoice.items, true);
  out += section(invoice, "projects", invoice.projects, false) + chart(invoice, invoice.projects);
  out += section(invoice, "users", invoice.users, false);
  out += fmt::format(
      "<h2>Sum</h2>\n<table><tr><td>Cost</td><td class=n>{}</td></tr><tr><td>Credit</td>"
      "<td class=n>{}</td></tr><tr class=total><td>To pay, {}</td><td "
      "class=n>{}</td></tr></table>\n<p>{}</p>\n</body></html>\n",
      shown_amount(invoice, invoice.cost), shown_amount(invoice, invoice.credit),
      for_html(invoice.currency), shown_amount(invoice, invoice.cost - invoice.credit),
      invoice_foot(invoice));
  return out;
}

}  // namespace gantry::cli
