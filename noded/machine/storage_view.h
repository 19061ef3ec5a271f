// What one job may see of the site's storage (noded.storage). In the job's own mounts everything
// else is covered (shim/rootfs/storage.h). Files that are opened for a job in the host's mounts,
// such as its output, are looked at here once they are open: by then no name can change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_access.h"
#include "common/result.h"

namespace gantry::runtime {

struct StorageView {
  std::vector<std::string> hidden;  // directories of the site's storage
  std::vector<StorageMount> shown;  // what the job sees below them
};

// Whether `path` is `top` or below it; both absolute and in their shortest form.
bool is_below(std::string_view path, std::string_view top);

// Whether the file that the descriptor stands for may be used for the job. Makes only system calls
// and allocates nothing.
bool shows(const StorageView& view, int fd);

// The same with the view of this process, which is that of its job; until it is set all is shown.
void set_storage_view(StorageView view);
bool storage_shows(int fd);

// Refuses a directory of the storage unless it and all above it belong to root and nobody else may
// write to them: who could rename one of them would bring what lies below it into view.
Result<void> check_storage_directory(const std::string& path);

}  // namespace gantry::runtime
