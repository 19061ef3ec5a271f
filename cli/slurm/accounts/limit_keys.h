// Slurm's keys of limits of use, old and new ones (GrpCPUs, GrpTRES), as limits of the documents
// (common/tenancy/use_limits.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/tenancy/use_limits.h"

namespace gantry::cli::slurm {

struct LimitKey {
  std::string_view name;   // as Slurm writes it
  std::size_t least;       // letters that are enough
  std::string_view limit;  // name of the limit of the document
  std::string_view tres;   // the only TRES that the key is about; "" = the value names them
};

// The key of a QOS, or of an association, that begins with the word (in lower case); null: none.
const LimitKey* qos_limit_key(std::string_view word);
const LimitKey* association_limit_key(std::string_view word);

// The value in the form that the limit of the document takes: "8" of GrpCPUs is "cpu=8".
std::string limit_value(const LimitKey& key, std::string_view value);

// Sets the limit in the texts; an error in Slurm's words if the value is none.
Result<void> put_limit(tenancy::LimitTexts& texts, const LimitKey& key, std::string_view value);

}  // namespace gantry::cli::slurm
