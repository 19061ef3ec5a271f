// Slurm's three ways to choose what a table shows, over one list of fields:
//   -o "%.18i %9P%T"       letters, with width and side, and any text around (squeue, sinfo, sprio)
//   -O jobid:10,state:\x1f names, with width, side or a suffix (squeue, sinfo)
//   -o jobid%20,state%-10  names, with width and side (sacct, sshare, sacctmgr, sstat)
// An unknown field is reported and left out, as in Slurm; only with the last way it ends the
// command.
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
  char letter = 0;               // letter for -o; 0 = none
  std::string_view name;         // name for -O and lists, in any case
  std::string_view header = {};  // {} = the same as the name
  void (*put)(std::string& out, const Row& row) = nullptr;
  bool more = false;  // needs a further request to the controller
  int width = 0;      // width in lists; negative: left-aligned
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

// Reads a format of -o. Fields that do not exist are added to `unknown`, one entry each.
Layout letters_layout(std::string_view format, std::span<const FieldName> fields,
                      std::vector<std::string>& unknown);

// Reads a format of -O. Fields without a width or suffix are 20 wide. Fields that do not exist are
// added to `unknown`.
Layout names_layout(std::string_view format, std::span<const FieldName> fields,
                    std::vector<std::string>& unknown);

// Reads a list of names, each with its own width or with %WIDTH; %-WIDTH aligns to the left. The
// beginning of a name is enough; it stands for the first field that begins so. Fields
// that do not exist are added to `unknown`.
Layout list_layout(std::string_view list, std::span<const FieldName> fields,
                   std::vector<std::string>& unknown);

// True if a field of the layout is marked `more`.
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

// The time in the form that SLURM_TIME_FORMAT says. If it is not set, "standard" or "relative",
// this is 2026-01-31T08:05:00; any other text is a format for strftime.
std::string shown_time(Instant t);
std::string shown_time(const std::optional<Instant>& t, std::string_view none);

std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

}  // namespace gantry::cli::slurm
