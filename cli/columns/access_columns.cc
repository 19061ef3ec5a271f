#include "cli/columns/access_columns.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/text/text.h"

namespace gantry::cli {
namespace {

constexpr Column<proto::AccessRow> kAccessColumns[] = {
    {.letter = 't',
     .name = "Tenant",
     .header = "TENANT",
     .put = [](std::string& o,
               const proto::AccessRow& r) { o += r.tenant.empty() ? "(cluster)" : r.tenant; }},
    {.letter = 'u',
     .name = "Who",
     .header = "WHO",
     .put = [](std::string& o, const proto::AccessRow& r) { o += subject_of(r); }},
    {.letter = 'r',
     .name = "Role",
     .header = "ROLE",
     .put = [](std::string& o, const proto::AccessRow& r) { o += r.role; }},
    {.letter = 'x',
     .name = "Rights",
     .header = "RIGHTS",
     .put = [](std::string& o,
               const proto::AccessRow& r) { o += fmt::format("{}", fmt::join(r.rights, ",")); }},
    {.letter = 'g',
     .name = "GPUs",
     .header = "GPUS",
     .put =
         [](std::string& o, const proto::AccessRow& r) {
           o += !r.gpus                ? "none"
                : r.gpu_models.empty() ? "all"
                                       : fmt::format("{}", fmt::join(r.gpu_models, ","));
         }},
    {.letter = 'e',
     .name = "Until",
     .header = "UNTIL",
     .put = [](std::string& o,
               const proto::AccessRow& r) { o += r.until ? format_time(*r.until) : "-"; }},
    {.letter = 's',
     .name = "Since",
     .header = "SINCE",
     .put = [](std::string& o,
               const proto::AccessRow& r) { o += r.since ? format_time(*r.since) : "-"; }},
    {.letter = 'b',
     .name = "By",
     .header = "BY",
     .put = [](std::string& o, const proto::AccessRow& r) { o += r.by.empty() ? "-" : r.by; }},
    {.letter = 'f',
     .name = "From",
     .header = "FROM",
     .put = [](std::string& o, const proto::AccessRow& r) { o += r.from; }},
    {.letter = 'R',
     .name = "Revision",
     .header = "REVISION",
     .right = true,
     .put = [](std::string& o,
               const proto::AccessRow& r) { o += r.revision ? std::to_string(*r.revision) : "-"; }},
};

}  // namespace

std::span<const Column<proto::AccessRow>> access_columns() {
  return kAccessColumns;
}

std::string subject_of(const proto::AccessRow& row) {
  return row.user.empty() ? "group " + row.group : row.user;
}

}  // namespace gantry::cli
