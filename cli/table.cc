// Writes tables.
#include "cli/table.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "common/text/printable.h"
#include "config/nearest.h"

namespace gantry::cli {
namespace {

constexpr std::size_t kBatchRows = 4096;
constexpr std::size_t kLeastColumn = 6;  // characters that a column keeps in a narrow terminal
constexpr std::size_t kLastColumn = 24;  // and the last column, if it has that many
constexpr std::size_t kLastHeader = 12;  // and the last column's header

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

// Characters on the screen: without the sequences that set colours.
std::size_t shown_characters(std::string_view text) {
  std::size_t count = 0;
  bool sequence = false;
  for (const char c : text) {
    if (c == '\033') sequence = true;
    if (!sequence && !continues(c)) ++count;
    if (sequence && c == 'm') sequence = false;
  }
  return count;
}

// The first `count` characters.
std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (!continues(text[at])) {
      if (count == 0) break;
      --count;
    }
    ++at;
  }
  return text.substr(0, at);
}

// The longest value of a column, in characters. `ends` says where each cell ends in `texts`.
std::size_t longest(std::string_view texts, std::span<const std::size_t> ends, std::size_t columns,
                    std::size_t column) {
  std::size_t most = 0;
  for (std::size_t at = column; at < ends.size(); at += columns) {
    const std::size_t begin = at == 0 ? 0 : ends[at - 1];
    most = std::max(most, characters(texts.substr(begin, ends[at] - begin)));
  }
  return most;
}

}  // namespace

TableWriter::TableWriter(Layout layout, TableStyle style, std::FILE* out)
    : layout_(std::move(layout)), style_(std::move(style)), out_(out) {
  const bool grows = std::any_of(layout_.cells.begin(), layout_.cells.end(),
                                 [](const Cell& cell) { return cell.grows; });
  if (grows && style_.delimiter.empty() && is_terminal(out))
    style_.columns = static_cast<std::size_t>(terminal_width(out));
}

TableWriter::~TableWriter() {
  flush();
}

void TableWriter::begin_row(Colour colour) {
  if (colours_.size() == kBatchRows) flush();
  colours_.push_back(colour);
  ++rows_;
}

void TableWriter::end_cell() {
  const std::size_t begin = ends_.empty() ? 0 : ends_.back();
  const std::string_view cell = std::string_view(texts_).substr(begin);
  if (!is_printable(cell)) {
    const std::string shown = printable(cell);
    texts_.replace(begin, std::string::npos, shown);
  }
  ends_.push_back(texts_.size());
}

void TableWriter::flush() {
  if (!started_) {
    grow_widths();
    if (style_.columns > 0) fit_widths();
    write_header();
    started_ = true;
  }
  const std::size_t width = layout_.cells.size();
  std::size_t begin = 0;
  for (std::size_t row = 0; row < colours_.size(); ++row) {
    const auto ends = std::span(ends_).subspan(row * width, width);
    write_row(ends, begin, colours_[row]);
    if (width > 0) begin = ends.back();
  }
  std::fwrite(line_.data(), 1, line_.size(), out_);
  line_.clear();
  texts_.clear();
  ends_.clear();
  colours_.clear();
}

void TableWriter::grow_widths() {
  const std::size_t width = layout_.cells.size();
  for (std::size_t i = 0; i + 1 < width; ++i) {
    Cell& cell = layout_.cells[i];
    if (!cell.grows) continue;
    auto most = static_cast<std::size_t>(cell.width);
    if (style_.header) most = std::max(most, cell.header.size());
    cell.width = static_cast<int>(std::max(most, longest(texts_, ends_, width, i)));
  }
}

bool TableWriter::has_words(std::size_t cell) const {
  constexpr std::string_view kOfNumbers = "0123456789.,:+-/%_[]KMGTPN/A ";
  for (std::size_t at = cell; at < ends_.size(); at += layout_.cells.size()) {
    const std::size_t begin = at == 0 ? 0 : ends_[at - 1];
    const auto text = std::string_view(texts_).substr(begin, ends_[at] - begin);
    if (text.find_first_not_of(kOfNumbers) != std::string_view::npos) return true;
  }
  return false;
}

// First, blank space shrinks: gaps, and columns that are wider than their values. Then the widest
// columns of words shrink, one character at a time, down to their headers. Numbers and ids are
// never cut. The last column gets the rest of the line, which must have a minimum.
void TableWriter::fit_widths() {
  if (layout_.cells.empty()) return;
  const std::size_t last = layout_.cells.size() - 1;
  std::size_t rest = std::max(std::min(longest(texts_, ends_, last + 1, last), kLastColumn),
                              std::min(layout_.cells[last].header.size(), kLastHeader));
  if (layout_.cells[last].right)
    rest = std::max(rest, static_cast<std::size_t>(layout_.cells[last].width));
  std::size_t total = layout_.cells[last].before.size() + rest;
  for (std::size_t i = 0; i < last; ++i)
    total += layout_.cells[i].before.size() + static_cast<std::size_t>(layout_.cells[i].width);
  std::vector<bool> may_be_cut;
  for (std::size_t i = 0; i <= last; ++i) {
    Cell& cell = layout_.cells[i];
    may_be_cut.push_back(cell.grows && has_words(i));
    if (total > style_.columns && cell.before == "  ") {
      cell.before = " ";
      --total;
    }
    const auto used =
        static_cast<int>(std::max(longest(texts_, ends_, last + 1, i), cell.header.size()));
    for (; i < last && cell.grows && total > style_.columns && cell.width > used; --total)
      --cell.width;
  }
  while (total > style_.columns) {
    Cell* widest = nullptr;
    for (std::size_t i = 0; i < last; ++i) {
      Cell& cell = layout_.cells[i];
      const std::size_t least = std::max(kLeastColumn, cell.header.size());
      if (!may_be_cut[i] || static_cast<std::size_t>(cell.width) <= least) continue;
      if (widest == nullptr || cell.width > widest->width) widest = &cell;
    }
    if (widest == nullptr) break;
    --widest->width;
    --total;
    widest->cut = true;
    style_.cut_mark = '+';
  }
  // The last column's values continue in further lines; its header is cut instead.
  Cell& cell = layout_.cells[last];
  const std::size_t begin = total - rest;
  if (begin < style_.columns) cell.header = first_characters(cell.header, style_.columns - begin);
}

void TableWriter::write_header() {
  if (!style_.header) return;
  const auto line = [&](auto&& text_of) {
    for (std::size_t i = 0; i < layout_.cells.size(); ++i)
      put_cell(layout_.cells[i], text_of(layout_.cells[i]), i + 1 == layout_.cells.size(),
               Colour::none);
    if (style_.trailing_delimiter) line_ += style_.delimiter;
    line_ += layout_.after;
    line_ += '\n';
  };
  line([](const Cell& cell) { return std::string_view(cell.header); });
  if (!style_.rule) return;
  std::string dashes;
  line([&](const Cell& cell) {
    const std::size_t width =
        cell.width != 0 ? static_cast<std::size_t>(cell.width) : cell.header.size();
    dashes.assign(width, '-');
    return std::string_view(dashes);
  });
}

void TableWriter::write_row(std::span<const std::size_t> ends, std::size_t begin, Colour colour) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    put_cell(layout_.cells[i], std::string_view(texts_).substr(begin, ends[i] - begin),
             i + 1 == ends.size(),
             style_.colour && layout_.cells[i].coloured ? colour : Colour::none);
    begin = ends[i];
  }
  if (style_.trailing_delimiter) line_ += style_.delimiter;
  line_ += layout_.after;
  line_ += '\n';
}

// The last cell of a line in a terminal: what does not fit continues in the next lines, broken at
// blanks and commas.
void TableWriter::put_last(const Cell& cell, std::string_view text, Colour colour) {
  line_ += cell.before;
  const std::size_t begin = line_.find_last_of('\n') + 1;  // npos + 1 is the first line's
  const std::size_t column = shown_characters(std::string_view(line_).substr(begin));
  const std::size_t room = column + kLeastColumn < style_.columns ? style_.columns - column : 0;
  line_ += colour_on(colour);
  while (room > 0 && characters(text) > room) {
    const std::string_view most = first_characters(text, room);
    const std::size_t comma = most.find_last_of(',');
    const std::size_t blank = first_characters(text, room + 1).find_last_of(' ');
    std::size_t length = most.size();
    if (blank != std::string_view::npos && blank > 0)
      length = blank;
    else if (comma != std::string_view::npos)
      length = comma + 1;
    line_ += text.substr(0, length);
    line_ += '\n';
    line_.append(column, ' ');
    text.remove_prefix(length);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  line_ += text;
  if (colour != Colour::none) line_ += kColourOff;
}

void TableWriter::put_cell(const Cell& cell, std::string_view text, bool last, Colour colour) {
  if (last && style_.columns > 0 && cell.grows && !cell.right && layout_.after.empty())
    return put_last(cell, text, colour);
  if (!style_.delimiter.empty()) {
    if (&cell != layout_.cells.data()) line_ += style_.delimiter;
    line_ += text;
    return;
  }
  line_ += cell.before;
  const auto width = static_cast<std::size_t>(cell.width);
  std::size_t length = characters(text);
  bool marked = false;
  if (cell.cut && width > 0 && length > width) {
    marked = style_.cut_mark != 0;
    text = first_characters(text, marked ? width - 1 : width);
    length = width;
  }
  const std::size_t blanks = width > length ? width - length : 0;
  if (cell.right) line_.append(blanks, ' ');
  line_ += colour_on(colour);
  line_ += text;
  if (marked) line_ += style_.cut_mark;
  if (colour != Colour::none) line_ += kColourOff;
  const bool ends_line = last && cell.grows && layout_.after.empty();
  if (!cell.right && !ends_line) line_.append(blanks, ' ');
}

RecordWriter& RecordWriter::field(std::string_view key, std::string_view value) {
  return raw(key, value.empty() ? "(null)" : value);
}

RecordWriter& RecordWriter::raw(std::string_view key, std::string_view value) {
  if (!at_start_) text_ += ' ';
  at_start_ = false;
  text_ += key;
  text_ += '=';
  text_ += printable(value);  // values come from users
  return *this;
}

void RecordWriter::line() {
  if (oneline_ || at_start_) return;
  text_ += "\n   ";
  at_start_ = true;
}

void RecordWriter::record() {
  text_ += oneline_ ? "\n" : "\n\n";
  std::fwrite(text_.data(), 1, text_.size(), out_);
  text_.clear();
  at_start_ = true;
}

// Parses formats of tables: squeue's and sinfo's %-fields, and sacct's field lists.
namespace {

constexpr int kMaxWidth = 10'000;  // most characters of one cell

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

Result<int> parse_width(std::string_view digits, std::string_view whole) {
  int width = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), width);
  if (error != std::errc{} || end != digits.data() + digits.size() || width > kMaxWidth)
    return fail(ErrorCode::usage, fmt::format("\"{}\" has a width above {}", whole, kMaxWidth));
  return width;
}

}  // namespace

Result<Layout> parse_format(std::string_view format, std::span<const ColumnInfo> columns,
                            bool grows) {
  Layout layout;
  std::string before;
  std::size_t at = 0;
  while (at < format.size()) {
    if (format[at] != '%') {
      before += format[at++];
      continue;
    }
    while (at < format.size() && format[at] == '%') ++at;
    const bool right = at < format.size() && format[at] == '.';
    if (right) ++at;
    const std::size_t digits = at;
    while (at < format.size() && is_digit(format[at])) ++at;
    int width = 0;
    if (at > digits) {
      ASSIGN(parsed, parse_width(format.substr(digits, at - digits), format));
      width = *parsed;
    }
    if (at == format.size())
      return fail(ErrorCode::usage,
                  fmt::format("the format \"{}\" ends in a % without a field", format));
    const char letter = format[at++];
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const ColumnInfo& c) { return c.letter == letter; });
    if (found == columns.end()) {
      std::string known;
      for (const ColumnInfo& c : columns)
        if (c.letter != 0) known += fmt::format(" %{}", c.letter);
      return fail(ErrorCode::usage,
                  fmt::format("Invalid job format specification: {}; there are{}", letter, known));
    }
    Cell& cell = layout.cells.emplace_back();
    cell.column = static_cast<std::size_t>(found - columns.begin());
    cell.before = std::move(before);
    cell.header = found->header;
    cell.coloured = found->coloured;
    cell.width = width;
    cell.right = right;
    cell.cut = !grows;
    cell.grows = grows;
    before.clear();
  }
  layout.after = std::move(before);
  return layout;
}

Result<Layout> parse_field_list(std::string_view fields, std::span<const ColumnInfo> columns) {
  Layout layout;
  while (!fields.empty()) {
    const std::size_t end = std::min(fields.find(','), fields.size());
    const std::string_view field = fields.substr(0, end);
    fields.remove_prefix(std::min(end + 1, fields.size()));
    if (field.empty()) continue;
    const std::size_t percent = field.find('%');
    const std::string name = lower(field.substr(0, percent));
    const auto found = std::find_if(columns.begin(), columns.end(), [&](const ColumnInfo& c) {
      return !c.name.empty() && lower(c.name) == name;
    });
    if (found == columns.end()) {
      std::vector<std::string_view> names;
      for (const ColumnInfo& c : columns)
        if (!c.name.empty()) names.push_back(c.name);
      return fail(ErrorCode::usage,
                  fmt::format("Invalid field requested: \"{}\"{}", field.substr(0, percent),
                              did_you_mean(field.substr(0, percent), names)));
    }
    Cell& cell = layout.cells.emplace_back();
    cell.column = static_cast<std::size_t>(found - columns.begin());
    cell.before = layout.cells.size() > 1 ? " " : "";
    cell.header = found->header;
    cell.coloured = found->coloured;
    cell.width = std::abs(found->width);
    cell.right = found->width > 0;
    cell.cut = true;
    if (percent == std::string_view::npos) continue;
    std::string_view digits = field.substr(percent + 1);
    cell.right = !digits.starts_with('-');
    if (!cell.right) digits.remove_prefix(1);
    ASSIGN(width, parse_width(digits, field));
    cell.width = *width;
  }
  if (layout.cells.empty()) return fail(ErrorCode::usage, "the list of fields is empty");
  return layout;
}

bool is_terminal(std::FILE* file) {
  return ::isatty(::fileno(file)) == 1;
}

int terminal_width(std::FILE* file) {
  winsize size{};
  if (::ioctl(::fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 1) return size.ws_col;
  return 80;
}

int terminal_height(std::FILE* file) {
  winsize size{};
  if (::ioctl(::fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_row > 1) return size.ws_row;
  return 24;
}

bool wants_colour(std::FILE* file) {
  const char* off = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_terminal(file) && (off == nullptr || *off == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string_view colour_on(Colour colour) {
  switch (colour) {
    case Colour::none: return "";
    case Colour::green: return "\033[32m";
    case Colour::yellow: return "\033[33m";
    case Colour::red: return "\033[31m";
    case Colour::cyan: return "\033[36m";
    case Colour::grey: return "\033[90m";
  }
  return "";
}

}  // namespace gantry::cli
