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
  if (item.starts_with("meter:")) return "units";
  return item.starts_with("overhead:") ? "" : "GPU-hours";
}

std::int64_t unit_of(const std::string& item) {
  return item == "memory" || item == "scratch" ? kMebibyteUnit : kThousandthsUnit;
}

const Held& held_of(const proto::LedgerRow& row) {
  if (row.item == "cpu") return row.cpu;
  if (row.item == "memory") return row.memory;
  if (row.item.starts_with("meter:")) return row.metered;
  return row.item == "scratch" ? row.scratch : row.gpu;
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

// The UTC day (days since 1970) on which a month or week has ended in every time zone, and the
// shared costs of it have been posted.
std::int64_t day_after(const std::string& period) {
  const auto number = [&](std::size_t at, std::size_t length) {
    return static_cast<std::int32_t>(std::stol(period.substr(at, length)));
  };
  const std::int32_t year = number(0, 4);
  if (period.size() == 8) {  // ISO week: the first week of a year contains 4 January
    std::int64_t monday = days_of({year, 1, 4});
    monday -= (weekday_of(monday) + 6) % 7;
    return monday + 7 * number(6, 2) + 2;
  }
  const std::int32_t month = number(5, 2);
  return days_of({month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1, 1}) + 2;
}

std::vector<InvoiceLine> lines_of(const std::map<std::string, Group>& groups) {
  std::vector<InvoiceLine> out;
  for (const auto& [name, group] : groups)
    out.push_back({name.empty() ? "-" : name, "", "", group.cost, group.credit});
  return out;
}

}  // namespace

Invoice make_invoice(const std::string& tenant, const std::string& period,
                     const proto::LedgerReply& reply) {
  Invoice out;
  out.tenant = tenant;
  out.period = period;
  out.currency = reply.currency.empty() ? "-" : reply.currency;
  out.final = reply.now.us / 1'000'000 >= day_after(period) * 86'400;
  std::map<std::string, Group> items, projects, users;
  Digest digest;
  for (const std::string& text : {tenant, period, reply.currency}) digest.add(text);
  for (const proto::LedgerRow& row : reply.rows) {
    for (auto* group : {&items[row.item], &projects[row.project], &users[row.user]}) {
      group->cost += row.cost;
      group->credit += row.credit;
    }
    add_held(items[row.item].held, held_of(row), unit_of(row.item));
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

std::string section(std::string_view title, const std::vector<InvoiceLine>& lines, bool amounts) {
  std::string out = fmt::format("<h2>{}</h2>\n<table><tr><th>{}</th>", title, title);
  if (amounts) out += "<th class=n>amount</th><th class=n>average price</th>";
  out += "<th class=n>cost</th><th class=n>credit</th><th class=n>net</th></tr>\n";
  for (const InvoiceLine& line : lines) {
    out += fmt::format("<tr><td>{}</td>", for_html(line.what));
    if (amounts)
      out += fmt::format("<td class=n>{}</td><td class=n>{}</td>", for_html(line.amount),
                         for_html(line.average));
    out += fmt::format("<td class=n>{}</td><td class=n>{}</td><td class=n>{}</td></tr>\n",
                       format_money(line.cost, 6), format_money(line.credit, 6),
                       format_money(line.cost - line.credit, 6));
  }
  return out + "</table>\n";
}

// A bar chart of what each line costs; the longest bar is 300 wide.
std::string chart(const std::vector<InvoiceLine>& lines) {
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
        168 + std::max<std::int64_t>(width, 1), y + 13, format_money(line.cost, 2));
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
      "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>Invoice {0}</title>"
      "<style>{1}</style></head><body>\n<h1>Invoice</h1>\n<p>{0}{2}</p>\n"
      "<table><tr><td>Tenant</td><td>{3}</td></tr><tr><td>Period</td><td>{4}, in the time "
      "zone of the tenant</td></tr><tr><td>Currency</td><td>{5}</td></tr></table>\n",
      for_html(invoice.number), kStyle,
      invoice.final ? "" : " (provisional: the period is not over)", for_html(invoice.tenant),
      for_html(invoice.period), for_html(invoice.currency));
  out += section("items", invoice.items, true);
  out += section("projects", invoice.projects, false) + chart(invoice.projects);
  out += section("users", invoice.users, false);
  out += fmt::format(
      "<h2>Sum</h2>\n<table><tr><td>Cost</td><td class=n>{}</td></tr><tr><td>Credit</td>"
      "<td class=n>{}</td></tr><tr class=total><td>To pay, {}</td><td "
      "class=n>{}</td></tr></table>\n"
      "<p>Exact: cost {}, credit {}.</p>\n</body></html>\n",
      format_money(invoice.cost, 2), format_money(invoice.credit, 2), for_html(invoice.currency),
      format_money(invoice.cost - invoice.credit, 2), format_money(invoice.cost, 6),
      format_money(invoice.credit, 6));
  return out;
}

}  // namespace gantry::cli
