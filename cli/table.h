// Every table of every command. A command declares its columns once, in one list; the default
// table, -o/--format, --help of the fields and the headers come from it.
//
// Cells come from users (job names, comments): what is not printable (common/text/printable.h) is
// shown as '?', so that no name can move the cursor. Widths count characters, not bytes.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"
#include "common/result.h"
#include "common/time/time.h"

namespace gantry::cli {

template <class Row>
struct Column {
  char letter = 0;          // in %-formats; 0 = none
  std::string_view name;    // in field lists: "JobID"
  std::string_view header;  // what stands on top
  int width = 0;            // usual width in field lists
  bool right = false;
  void (*put)(std::string& out, const Row& row) = nullptr;
  Colour (*colour)(const Row& row) = nullptr;
};

// One cell of a line: literal text before it, then the column's value.
struct Cell {
  std::size_t column = 0;
  std::string before;
  std::string header;
  int width = 0;  // least width; 0 = as long as it is
  bool right = false;
  bool cut = false;       // longer values are cut to width
  bool coloured = false;  // shows the row's colour
  bool grows = false;     // as wide as the widest value of the first batch (not the last cell)
};

struct Layout {
  std::vector<Cell> cells;
  std::string after;
};

struct TableStyle {
  bool header = true;
  bool rule = false;      // dashes under the header (gacct)
  char cut_mark = 0;      // last character of a cut value: '+'
  std::string delimiter;  // not empty: values as they are, parted by it (-P, -p)
  bool trailing_delimiter = false;
  bool colour = false;
};

// Collects lines and writes them in batches; the first batch fixes the widths of cells that grow.
class TableWriter {
 public:
  TableWriter(Layout layout, TableStyle style, std::FILE* out);
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;
  ~TableWriter();  // writes what is left

  void begin_row(Colour colour);
  std::string& cell_text() { return texts_; }  // append one cell's value, then end_cell()
  void end_cell();
  void flush();

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  void write_header();
  void write_row(std::span<const std::size_t> ends, std::size_t begin, Colour colour);
  void put_cell(const Cell& cell, std::string_view text, bool last, Colour colour);
  void grow_widths();

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

// What a format or field list needs to know of the columns.
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
    out.push_back({c.letter, c.name, c.header, c.width, c.colour != nullptr});
  return out;
}

// Slurm's -o: "%[[.]WIDTH]LETTER" and any text around; "%%x" is the field x too, as in Slurm. A
// width cuts. With `grows`, widths are the least ones and nothing is cut (our default tables).
Result<Layout> parse_format(std::string_view format, std::span<const ColumnInfo> columns,
                            bool grows = false);

// sacct's -o: "JobID,State%20,NodeList%-30", any case. The usual width counts where none is given.
Result<Layout> parse_field_list(std::string_view fields, std::span<const ColumnInfo> columns);

}  // namespace gantry::cli
