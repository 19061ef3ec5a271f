// The invoice as PDF 1.4 (ISO 32000-1): text in two of the fonts that every PDF reader has, and
// bars.
#include <fmt/core.h>

#include <algorithm>

#include "cli/bill/invoice.h"

namespace gantry::cli {
namespace {

constexpr int kPageWidth = 595;  // A4 in points
constexpr int kHeight = 842;
constexpr int kLeft = 50;
constexpr int kRight = 545;
constexpr int kBottom = 60;
constexpr double kCourier = 0.6;  // width of a character divided by the font size

// A literal string of PDF. Characters that Latin-1 does not have become question marks.
std::string literal(std::string_view text) {
  std::string out = "(";
  for (const char c : text) {
    if (c == '(' || c == ')' || c == '\\') out += '\\';
    const auto octet = static_cast<unsigned char>(c);
    out += octet < 0x20 || octet >= 0x7f ? '?' : c;
  }
  return out + ")";
}

class PdfPages {
 public:
  PdfPages() { begin_page(); }

  // Begins a new page unless this one has room for `height` more points.
  void need(int height) {
    if (y_ - height < kBottom) begin_page();
  }
  void down(int points) { y_ -= points; }
  void title(std::string_view text, int size) {
    need(size + 8);
    down(size);
    put("F1", size, kLeft, text);
    down(8);
  }
  // Writes a row. Cell 0 begins at the left margin; each other cell ends at its place in `ends`.
  void row(const std::vector<std::string>& cells, const std::vector<int>& ends, bool strong) {
    constexpr int kSize = 9;
    need(kSize + 6);
    down(kSize + 5);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const double length = static_cast<double>(cells[i].size()) * kSize * kCourier;
      const double x = i == 0 ? kLeft : ends[i] - length;
      put(strong ? "F3" : "F2", kSize, x, cells[i]);
    }
  }
  void rule() {
    down(3);
    page_ += fmt::format("0.7 G {} {} m {} {} l S 0 G\n", kLeft, y_, kRight, y_);
  }
  void bar(std::string_view name, int width, std::string_view value) {
    need(16);
    down(14);
    put("F2", 9, kLeft, name.substr(0, 24));
    page_ += fmt::format("0.18 0.44 0.62 rg 190 {} {} 9 re f 0 g\n", y_ - 2, width);
    put("F2", 9, 196 + width, value);
  }

  std::string take() {
    pages_.push_back(std::move(page_));
    std::string out = "%PDF-1.4\n";
    std::vector<std::size_t> at;
    const auto object = [&](const std::string& body) {
      at.push_back(out.size());
      out += fmt::format("{} 0 obj\n{}\nendobj\n", at.size(), body);
    };
    std::string kids;
    for (std::size_t i = 0; i < pages_.size(); ++i) kids += fmt::format("{} 0 R ", 6 + 2 * i);
    object("<< /Type /Catalog /Pages 2 0 R >>");
    object(fmt::format("<< /Type /Pages /Kids [ {}] /Count {} >>", kids, pages_.size()));
    for (const char* font : {"Helvetica-Bold", "Courier", "Courier-Bold"})
      object(fmt::format("<< /Type /Font /Subtype /Type1 /BaseFont /{} >>", font));
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      object(
          fmt::format("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents {} 0 R "
                      "/Resources << /Font << /F1 3 0 R /F2 4 0 R /F3 5 0 R >> >> >>",
                      kPageWidth, kHeight, 7 + 2 * i));
      object(fmt::format("<< /Length {} >>\nstream\n{}endstream", pages_[i].size(), pages_[i]));
    }
    const std::size_t table = out.size();
    out += fmt::format("xref\n0 {}\n0000000000 65535 f \n", at.size() + 1);
    for (const std::size_t offset : at) out += fmt::format("{:010} 00000 n \n", offset);
    return out + fmt::format("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{}\n%%EOF\n",
                             at.size() + 1, table);
  }

 private:
  void begin_page() {
    if (!page_.empty()) pages_.push_back(std::move(page_));
    page_ = "0.5 w\n";
    y_ = kHeight - 60;
  }
  void put(std::string_view font, int size, double x, std::string_view text) {
    page_ += fmt::format("BT /{} {} Tf {:.1f} {} Td {} Tj ET\n", font, size, x, y_, literal(text));
  }

  std::vector<std::string> pages_;
  std::string page_;
  int y_ = 0;
};

// The words of a text in lines of at most `most` characters.
std::vector<std::string> wrapped(std::string_view text, std::size_t most) {
  std::vector<std::string> out(1);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!out.back().empty() && out.back().size() + 1 + word.size() > most) out.emplace_back();
    out.back().append(out.back().empty() ? "" : " ").append(word);
  }
  return out;
}

void add_lines(PdfPages& pages, const Invoice& invoice, const std::string& title,
               const std::vector<InvoiceLine>& lines, bool amounts) {
  pages.need(60);
  pages.down(14);
  pages.title(title, 12);
  const std::vector<int> ends = amounts ? std::vector<int>{0, 262, 312, 390, 465, kRight}
                                        : std::vector<int>{0, 390, 465, kRight};
  std::vector<std::string> head{""};
  if (amounts) head.insert(head.end(), {"amount", "average"});
  head.insert(head.end(), {"cost", "credit", "net"});
  pages.row(head, ends, true);
  pages.rule();
  for (const InvoiceLine& line : lines) {
    std::vector<std::string> cells{line.what.substr(0, amounts ? 18 : 40)};
    if (amounts) cells.insert(cells.end(), {line.amount, line.average});
    for (const Money money : {line.cost, line.credit, line.cost - line.credit})
      cells.push_back(shown_amount(invoice, money));
    pages.row(cells, ends, false);
  }
}

}  // namespace

std::string invoice_pdf(const Invoice& invoice) {
  PdfPages pages;
  pages.title("Invoice", 24);
  const std::vector<int> wide{0, 0};
  for (const auto& [name, value] : invoice_head(invoice))
    pages.row({fmt::format("{:<12}{}", name, value)}, wide, false);
  add_lines(pages, invoice, "Items", invoice.items, true);
  add_lines(pages, invoice, "Projects", invoice.projects, false);
  pages.down(8);
  Money most{1};
  for (const InvoiceLine& line : invoice.projects) most = std::max(most, line.cost);
  for (const InvoiceLine& line : invoice.projects)
    pages.bar(line.what,
              static_cast<int>(static_cast<__int128>(line.cost.micros) * 260 / most.micros) + 1,
              shown_amount(invoice, line.cost));
  add_lines(pages, invoice, "Users", invoice.users, false);
  pages.need(80);
  pages.down(16);
  pages.rule();
  const std::vector<int> sum{0, kRight};
  pages.row({"Cost", shown_amount(invoice, invoice.cost)}, sum, false);
  pages.row({"Credit", shown_amount(invoice, invoice.credit)}, sum, false);
  pages.row({"To pay, " + invoice.currency, shown_amount(invoice, invoice.cost - invoice.credit)},
            sum, true);
  pages.down(8);
  for (const std::string& line : wrapped(invoice_foot(invoice), 90)) pages.row({line}, wide, false);
  return pages.take();
}

}  // namespace gantry::cli
