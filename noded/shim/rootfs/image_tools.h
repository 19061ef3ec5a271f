// The programs that images need, each with as few rights as it can have: skopeo as the job's user,
// umoci and unsquashfs as a user id that owns nothing but the slot's out/.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/result.h"
#include "noded/image/reference.h"
#include "noded/image/store.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

inline constexpr const char* kSquashfsFile = "image.sqsh";  // in a slot's layout/

ImageStore store_of(const NodeSetup& setup);

// A slot with an empty layout/ and out/.
Result<Slot> prepare_slot(const Shim& shim, const ImageStore& store, const Stopped& stopped);
// The slot's incoming/, the user's from now on.
Result<Fd> make_incoming(const Shim& shim, const Slot& slot);
// A file of root's in layout/, with its directories, that the slot's uid may read.
Result<Fd> new_file(const Slot& slot, const std::string& path);

class ImageTools {
 public:
  ImageTools(const Shim& shim, Signals& signals);

  // Why not to go on: SIGTERM, or the time for images is over.
  std::string stopped();

  // The key that the image in a registry would have, if that can be told without copying it.
  // `turn` is the user's own while this runs.
  std::optional<std::string> inspect(const std::string& source, const ImageStore::Turn& turn,
                                     const ImageStore& store);
  // To incoming/image, in the form "dir:".
  Result<void> copy(const std::string& source, const Slot& slot, const ImageStore& store);
  // From layout/ to out/tree.
  Result<void> unpack_layers(const Slot& slot, const StoreLimits& limits);
  Result<void> unpack_squashfs(const Slot& slot, const StoreLimits& limits);

 private:
  // Every program runs through here: in a cgroup with a limit of memory, first to be killed when
  // the machine has none left, and with no place to write to but one. `also_stopped` is asked
  // besides stopped(). invalid_argument: it failed because of the image, as it would on every node.
  struct Bounds {
    std::string cgroup;
    std::int64_t memory = 0;     // bytes
    std::string writable;        // nothing but this directory; empty = nothing
    bool reads_network = false;  // else what it reads is the image alone, and so is its failure
  };
  Result<void> run(ChildSpec spec, const Bounds& bounds,
                   const std::function<std::string()>& also_stopped = {});
  Result<std::string> manifest_of(const std::string& source, const ImageStore::Turn& turn,
                                  const ImageStore& store);
  [[nodiscard]] ChildSpec skopeo(const ImageStore& store, const std::string& temporary) const;
  Result<void> unpack(std::vector<std::string> argv, const Slot& slot, const StoreLimits& limits);

  const Shim& shim_;
  Signals& signals_;
  Instant deadline_;
  bool told_to_end_ = false;
};

}  // namespace gantry::runtime
