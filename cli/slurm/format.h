// Slurm's three ways to name what a table shows, over one list of fields:
//   -o "%.18i %9P%T"       letters, with width and side, and any text around (squeue, sinfo, sprio)
//   -O jobid:10,state:\x1f names, with width, side or a suffix (squeue, sinfo)
//   -o jobid%20,state%-10  names, with width and side (sacct, sshare, sacctmgr, sstat)
// An unknown field is said and left out, as Slurm does; only the last way ends the command.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/table.h"

namespace gantry::cli::slurm {

template <class Row>
struct Field {
  char letter = 0;               // of -o; 0 = none
  std::string_view name;         // of -O and lists, any case
  std::string_view header = {};  // {} = the name
  void (*put)(std::string& out, const Row& row) = nullptr;
  bool more = false;  // needs what costs another question
  int width = 0;      // in lists; negative: left-aligned
};

struct FieldName {
  char letter;
  std::string_view name;
  std::string_view header;
  int width;
};
template <class Row>
std::vector<FieldName> names_of(std::span<const Field<Row>> fields) {
  std::vector<FieldName> out;
  for (const Field<Row>& f : fields)
    out.push_back({f.letter, f.name, f.header.data() == nullptr ? f.name : f.header, f.width});
  return out;
}

// -o. `unknown` gets what has no field, one entry each.
Layout letters_layout(std::string_view format, std::span<const FieldName> fields,
                      std::vector<std::string>& unknown);

// -O. Fields without a width or suffix are 20 wide.
Layout names_layout(std::string_view format, std::span<const FieldName> fields,
                    std::vector<std::string>& unknown);

// Lists with %WIDTH; each field at most `least` characters short of its header's length.
Layout list_layout(std::string_view list, std::span<const FieldName> fields,
                   std::vector<std::string>& unknown);

// Whether a field of the layout is marked `more`.
template <class Row>
bool needs_more(const Layout& layout, std::span<const Field<Row>> fields) {
  for (const Cell& cell : layout.cells)
    if (fields[cell.column].more) return true;
  return false;
}

template <class Row>
void put_row(TableWriter& table, std::span<const Field<Row>> fields, const Row& row) {
  table.begin_row(Colour::none);
  for (const Cell& cell : table.layout().cells) {
    fields[cell.column].put(table.cell_text(), row);
    table.end_cell();
  }
}

// As SLURM_TIME_FORMAT says: "standard" (also unset) is 2026-01-31T08:05:00, "relative" too, any
// other text is strftime's.
std::string shown_time(Instant t);
std::string shown_time(const std::optional<Instant>& t, std::string_view none);

std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

}  // namespace gantry::cli::slurm
