// Columns of gtenant list and quota, gshare and gprio.
#pragma once

#include <span>
#include <string>

#include "cli/table.h"
#include "common/proto/access.h"
#include "common/proto/tenancy_view.h"

namespace gantry::cli {

std::span<const Column<proto::TenantUse>> tenant_columns();
inline constexpr std::string_view kTenantFormat = "%n %c %.6q %.7r %.6g %.6p %.6m %s";

struct QuotaRow {  // one cell of one tenant or cohort
  const proto::TenantUse* whose = nullptr;
  const proto::QuotaUse* cell = nullptr;
  bool first = false;  // first row of its tenant: shows its name
  bool bars = false;   // draw bars, because the output is a terminal
};
std::span<const Column<QuotaRow>> quota_columns();
// The default tables fit a terminal of 80 columns; bars are drawn only if there is room for them.
inline constexpr std::string_view kQuotaFormat = "%n %R %.6u %.7o %.8b %.6l %.5L %.6a %p";
inline constexpr int kColumnsForBars = 105;

std::span<const Column<proto::ShareRow>> share_columns();
inline constexpr std::string_view kShareFormat = "%n %.6s %.6S %.6u %.6U %.7f %.7b %.5k %.6q %.7r";

std::span<const Column<proto::PriorityRow>> priority_columns();
inline constexpr std::string_view kPriorityFormat = "%.5o %.8i %u %P %.6r %v %.7F %.8p";
inline constexpr std::string_view kPriorityLongFormat =
    "%.5o %.8i %u %P %c %.6r %b %v %.7f %.7F %.8p %t";
inline constexpr std::string_view kPriorityTermsFormat = "%.5o %.8i %u %P %c %.8p %w";

// Draws "[######+++.....]": used of its own quota, borrowed, and free up to the limit.
std::string bar(std::int64_t used, std::int64_t nominal, std::int64_t limit, int width);

// Columns of the access report: who may do what, since when and by whom.

std::span<const Column<proto::AccessRow>> access_columns();

// "ann", "group ml".
std::string subject_of(const proto::AccessRow& row);

}  // namespace gantry::cli
