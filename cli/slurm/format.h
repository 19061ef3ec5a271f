// Slurm's three ways to choose what a table shows, over one list of fields:
//   -o "%.18i %9P%T"       letters, with width and side, and any text around (squeue, sinfo, sprio)
//   -O jobid:10,state:\x1f names, with width, side or a suffix (squeue, sinfo)
//   -o jobid%20,state%-10  names, with width and side (sacct, sshare, sacctmgr, sstat)
// An unknown field is reported and left out, as in Slurm; with the last form it is an error.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/table.h"

namespace gantry::cli::slurm {

// Reads a format of -o. Fields that do not exist are added to `unknown`, one entry each.
Layout letters_layout(std::string_view format, std::span<const ColumnInfo> fields,
                      std::vector<std::string>& unknown);

// Reads a format of -O. Fields without a width or suffix are 20 wide. Fields that do not exist are
// added to `unknown`.
Layout names_layout(std::string_view format, std::span<const ColumnInfo> fields,
                    std::vector<std::string>& unknown);

// Reads a list of names, each with its own width or with %WIDTH; %-WIDTH aligns to the left. The
// beginning of a name is enough; it stands for the first field with this prefix. Fields that do not
// exist are added to `unknown`.
Layout list_layout(std::string_view list, std::span<const ColumnInfo> fields,
                   std::vector<std::string>& unknown);

// How a list of names is shown: in columns with a rule below their headers, or with -p and -P as
// values that a delimiter separates.
template <class Query>
TableStyle list_style(const Query& q, Layout& layout, std::string_view delimiter = "|") {
  if (!q.parsable && !q.parsable2) {
    layout.after = " ";
    return {.header = !q.no_header, .rule = true, .cut_mark = '+'};
  }
  return {.header = !q.no_header,
          .delimiter = std::string(delimiter),
          .trailing_delimiter = !q.parsable2};
}

// The time in the form that SLURM_TIME_FORMAT says. If it is not set, "standard" or "relative",
// this is 2026-01-31T08:05:00; any other text is a format for strftime.
std::string shown_time(Instant t);
std::string shown_time(const std::optional<Instant>& t, std::string_view none);

std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

}  // namespace gantry::cli::slurm
