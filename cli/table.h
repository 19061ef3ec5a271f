// The tables that all commands print. A command declares its columns once, in one list; the default
// table, -o/--format, the --help of the fields and the headers are made from that list.
//
// In a terminal a default table is as wide as the window at the most: its widest columns are cut
// (the last character is '+' then), and the last column continues in further lines. Into a file or
// a pipe nothing is cut.
//
// Cells contain texts of users (job names, comments). Characters that are not printable
// (common/text/printable.h) are shown as '?', so that no job name can move the cursor. Widths count
// characters, not bytes.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/time/time.h"

namespace gantry::cli {

// Whether a person watches the output, and how large the window is.

bool is_terminal(std::FILE* file);
int terminal_width(std::FILE* file);   // columns; 80 if unknown
int terminal_height(std::FILE* file);  // lines; 24 if unknown
bool wants_colour(std::FILE* file);    // true for a terminal, unless NO_COLOR or TERM=dumb is set

enum class Colour : unsigned char { none, green, yellow, red, cyan, grey };
std::string_view colour_on(Colour colour);  // "" for none
inline constexpr std::string_view kColourOff = "\033[0m";

// A column of a table. Both families of commands have tables of these, with their own letters,
// names and headers.
template <class Row>
struct Column {
  char letter = 0;               // letter in %-formats; 0 = none
  std::string_view name;         // name in field lists: "JobID"
  std::string_view header = {};  // text in the header line; {} = the name
  void (*put)(std::string& out, const Row& row) = nullptr;
  bool more = false;  // the column needs a further request to the controller
  int width = 0;      // usual width in field lists; negative: left-aligned
  Colour (*colour)(const Row& row) = nullptr;
};
using Out = std::string&;

// A column that only field lists show, with its usual width.
template <class Put>
constexpr auto sized(std::string_view name, std::string_view header, int width, Put put) {
  constexpr auto of_row = []<class Row>(void (*)(std::string&, const Row&)) {
    return Column<Row>{};
  };
  decltype(of_row(+put)) column{0, name, header, put, false, width};
  return column;
}
template <class Put>
constexpr auto sized(std::string_view name, int width, Put put) {
  return sized(name, {}, width, put);
}
template <class Row>
constexpr Column<Row> coloured(Column<Row> column, Colour (*colour)(const Row& row)) {
  column.colour = colour;
  return column;
}

// One cell of a line: literal text before it, then the column's value.
struct Cell {
  std::size_t column = 0;
  std::string before;
  std::string header;
  int width = 0;  // least width; 0 = as long as the value
  bool right = false;
  bool cut = false;       // longer values are cut to the width
  bool coloured = false;  // shown in the row's colour
  bool grows = false;     // as wide as the widest value of the first batch (not the last cell)
};

struct Layout {
  std::vector<Cell> cells;
  std::string after;
};

struct TableStyle {
  bool header = true;
  bool rule = false;  // dashes under the header (gacct)
  char cut_mark = 0;  // last character of a cut value: '+'
  std::string delimiter =
      {};  // not empty: values are not padded, and this text separates them (-P, -p)
  bool trailing_delimiter = false;
  bool colour = false;
  std::size_t columns =
      0;  // width of the terminal, for a table with growing columns; 0: as wide as its values
};

// Collects lines and writes them in batches. The first batch decides the widths of cells that grow.
class TableWriter {
 public:
  TableWriter(Layout layout, TableStyle style, std::FILE* out);
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;
  ~TableWriter();  // writes the remaining lines

  void begin_row(Colour colour);
  std::string& cell_text() { return texts_; }  // append one cell's value here, then call end_cell()
  void end_cell();
  void flush();

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  void write_header();
  void write_row(std::span<const std::size_t> ends, std::size_t begin, Colour colour);
  void put_cell(const Cell& cell, std::string_view text, bool last, Colour colour);
  void grow_widths();
  void fit_widths();                                     // shrinks the widths to the terminal
  [[nodiscard]] bool has_words(std::size_t cell) const;  // so far not only numbers
  void put_last(const Cell& cell, std::string_view text, Colour colour);

  Layout layout_;
  TableStyle style_;
  std::FILE* out_;
  std::string texts_;              // cells of the waiting rows, one after another
  std::vector<std::size_t> ends_;  // where each cell ends in texts_
  std::vector<Colour> colours_;    // one per waiting row
  std::string line_;
  bool started_ = false;
  std::size_t rows_ = 0;
};

template <class Row>
void add_row(TableWriter& table, std::span<const Column<Row>> columns, const Row& row) {
  Colour colour = Colour::none;
  for (const Cell& cell : table.layout().cells)
    if (columns[cell.column].colour != nullptr) colour = columns[cell.column].colour(row);
  table.begin_row(colour);
  for (const Cell& cell : table.layout().cells) {
    columns[cell.column].put(table.cell_text(), row);
    table.end_cell();
  }
}

// ---- formats

// What the parser of formats and field lists needs to know of a column.
struct ColumnInfo {
  char letter;
  std::string_view name;
  std::string_view header;
  int width;
  bool coloured;
};
template <class Row>
std::vector<ColumnInfo> infos(std::span<const Column<Row>> columns) {
  std::vector<ColumnInfo> out;
  for (const Column<Row>& c : columns)
    out.push_back({c.letter, c.name, c.header.data() == nullptr ? c.name : c.header, c.width,
                   c.colour != nullptr});
  return out;
}

// True if a column of the layout is marked `more`.
template <class Row>
bool needs_more(const Layout& layout, std::span<const Column<Row>> columns) {
  for (const Cell& cell : layout.cells)
    if (columns[cell.column].more) return true;
  return false;
}

// Parses Slurm's -o format: "%[[.]WIDTH]LETTER" with any text between; "%%x" is the field x too, as
// in Slurm. Values longer than a width are cut. With `grows`, widths are minimums and nothing is
// cut (our default tables).
Result<Layout> parse_format(std::string_view format, std::span<const ColumnInfo> columns,
                            bool grows = false);

// Parses sacct's -o list, in any case: "JobID,State%20,NodeList%-30". A field without a width gets
// its default one.
Result<Layout> parse_field_list(std::string_view fields, std::span<const ColumnInfo> columns);

// Slurm's record layout: "JobId=12 JobName=x". Further lines of a record are indented by three, and
// a blank line separates records. With `oneline` each record is one line. An empty value is written
// as "(null)".

class RecordWriter {
 public:
  RecordWriter(bool oneline, std::FILE* out) : oneline_(oneline), out_(out) {}
  RecordWriter& field(std::string_view key, std::string_view value);
  RecordWriter& field(std::string_view key, std::uint64_t value) {
    return field(key, std::to_string(value));
  }
  RecordWriter& raw(std::string_view key, std::string_view value);  // an empty value stays empty
  void line();    // the next field begins a new line
  void record();  // ends the record and writes it

 private:
  bool oneline_;
  std::FILE* out_;
  std::string text_;
  bool at_start_ = true;
};

}  // namespace gantry::cli
