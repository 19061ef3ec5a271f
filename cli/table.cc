// Writes tables.
#include "cli/table.h"

#include <algorithm>

#include "common/text/printable.h"

namespace gantry::cli {
namespace {

constexpr std::size_t kBatchRows = 4096;

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
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

}  // namespace

TableWriter::TableWriter(Layout layout, TableStyle style, std::FILE* out)
    : layout_(std::move(layout)), style_(std::move(style)), out_(out) {}

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
    for (std::size_t at = i; at < ends_.size(); at += width) {
      const std::size_t begin = at == 0 ? 0 : ends_[at - 1];
      most = std::max(most, characters(std::string_view(texts_).substr(begin, ends_[at] - begin)));
    }
    cell.width = static_cast<int>(most);
  }
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

void TableWriter::put_cell(const Cell& cell, std::string_view text, bool last, Colour colour) {
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

}  // namespace gantry::cli
