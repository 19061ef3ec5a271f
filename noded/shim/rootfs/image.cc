#include "noded/shim/rootfs/image.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "noded/image/store.h"
#include "noded/image/take_in.h"
#include "noded/shim/rootfs/image_tools.h"

namespace gantry::runtime {

namespace {

// The directory is opened in the private mounts: the kernel makes no overlay on a directory that
// was opened in others.
Result<void> open_directory(const Shim& shim, ImageUse& image, Signals& signals) {
  ImageTools tools(shim, signals);
  auto dir =
      open_user_directory(shim.request.owner, image.path, [&tools] { return tools.stopped(); });
  if (!dir && dir.error().code == ErrorCode::permission_denied &&
      dir.error().message.ends_with("Permission denied"))
    return fail(ErrorCode::permission_denied,
                "image " + image.path + ": " + shim.request.owner.user + " may not read it");
  if (!dir) return fail(dir.error().code, "image " + dir.error().message);
  if (!is_within(dir->get(), shim.setup.image_dirs))
    return fail(ErrorCode::permission_denied,
                "image " + image.path + ": not below one of this node's image directories");
  image.root = std::move(*dir);
  return {};
}

// One image that is being fetched into the cache.
class Fetch {
 public:
  Fetch(const Shim& shim, const ImageReference& reference, Signals& signals)
      : shim_(shim),
        owner_(shim.request.owner),
        reference_(reference),
        source_(reference.source),
        file_(reference.file),
        store_(store_of(shim.setup)),
        tools_(shim, signals),
        stopped_([this] { return tools_.stopped(); }) {}

  Result<ImageStore::Held> run() {
    TRY(store_.make());
    const UserFile file{
        nullptr, reference_.kind == ImageKind::squashfs ? reference_.source : reference_.file,
        &shim_.setup.image_dirs};
    FileState state;
    if (!file.path.empty()) {  // skopeo's own error would not show whose fault that is
      ASSIGN(seen, look_at(owner_, file, stopped_));
      state = std::move(*seen);
      TRY(name_truly(state.true_path));
    }
    ASSIGN(turn, store_.take_turn(owner_.uid, reference_.source, stopped_));
    return reference_.kind == ImageKind::squashfs ? squashfs(state) : copied(state, *turn);
  }

 private:
  // If the node has a list of allowed directories, skopeo gets the checked path without links.
  // Otherwise a link could be changed before skopeo opens it. A user who can put a link into that
  // path could as well put an image there.
  Result<void> name_truly(const std::string& path) {
    if (reference_.kind != ImageKind::copied || shim_.setup.image_dirs.empty()) return {};
    if (path.find(':') != std::string::npos)
      return fail(ErrorCode::invalid_argument, path + ": the path of such an image has no ':'");
    const auto at = reference_.source.find(':') + 1;
    source_ = reference_.source.substr(0, at) + path +
              reference_.source.substr(at + reference_.file.size());
    file_ = path;
    return {};
  }

  Result<ImageStore::Held> squashfs(const FileState& state) {
    const std::string& path = reference_.source;
    if (state.directory) return fail(ErrorCode::invalid_argument, path + ": is a directory");
    if (auto held = store_.find_by_state(state.identity, owner_.uid)) return std::move(*held);
    ASSIGN(slot, prepare_slot(shim_, store_, stopped_));
    ASSIGN(out, new_file(*slot, kSquashfsFile));
    ASSIGN(taken, take_in(owner_, {nullptr, path, &shim_.setup.image_dirs}, *out,
                          store_.limits().image_bytes, stopped_));
    ImageRecord record;
    record.source = path;
    return unpacked(*slot, key_of_squashfs(taken->digest), std::move(record),
                    unchanged(path, state) ? state.identity : "", taken->bytes,
                    [&] { return tools_.unpack_squashfs(*slot, store_.limits()); });
  }

  // Whether the file is unchanged since before it was read. If not, its state does not describe
  // what was read.
  bool unchanged(const std::string& path, const FileState& state) {
    const auto after = look_at(owner_, {nullptr, path}, stopped_);
    return after && after->identity == state.identity;
  }

  // Finds the key that an image would have without running a program: it parses only what was read
  // here, with a limit. Without a key the image has to be copied first. The key is not verified
  // yet; the store also needs a proof.
  Result<std::optional<std::string>> claimed_key(const FileState& file,
                                                 const ImageStore::Turn& turn) {
    if (reference_.file.empty()) return tools_.inspect(source_, turn, store_);
    if (!file.directory) return std::nullopt;
    const auto read = [&](const std::string& name) {
      return take_in_text(owner_, {nullptr, file_ + "/" + name, &shim_.setup.image_dirs},
                          kMaxImageJson, stopped_);
    };
    // An index that is not readable, or never ends, is not passed to skopeo either.
    ASSIGN(index, read("index.json"));
    const auto tag = source_.substr(source_.find(':') + 1 + file_.size());
    const auto digest = layout_manifest(*index, tag.empty() ? tag : tag.substr(1));
    if (!digest) return std::nullopt;
    const auto text = read("blobs/sha256/" + *digest);
    if (!text || sha256_hex(*text) != *digest) return std::nullopt;
    const auto manifest = parse_manifest(*text);
    if (!manifest) return std::nullopt;
    return key_of(*manifest);
  }

  Result<ImageStore::Held> copied(const FileState& file, const ImageStore::Turn& turn) {
    // An archive is one file, so the state also has the name of the image inside.
    std::string state;
    if (!reference_.file.empty() && !file.directory)
      state = file.identity + "." + sha256_hex(reference_.source).substr(0, 16);
    if (!state.empty())
      if (auto held = store_.find_by_state(state, owner_.uid)) return std::move(*held);
    ASSIGN(claimed, claimed_key(file, turn));
    if (*claimed)
      if (auto held = store_.find(**claimed, owner_.uid)) return std::move(*held);
    ASSIGN(slot, prepare_slot(shim_, store_, stopped_));
    ASSIGN(incoming, make_incoming(shim_, *slot));
    TRY(tools_.copy(source_, *slot, store_));
    ASSIGN(text,
           take_in_text(owner_, {&*incoming, "image/manifest.json"}, kMaxImageJson, stopped_));
    ASSIGN(manifest, parse_manifest(*text));
    ASSIGN(meta, take_config(*incoming, *manifest));
    ASSIGN(layers, take_layers(*incoming, *slot, *manifest, *meta));
    remove_tree(slot->dir + "/incoming");
    for (const auto& file : minimal_layout(*layers)) {
      ASSIGN(out, new_file(*slot, file.path));
      if (::write(out->get(), file.text.data(), file.text.size()) !=
          static_cast<ssize_t>(file.text.size()))
        return fail_errno(ErrorCode::io_error, file.path);
    }
    if (!state.empty() && !unchanged(reference_.file, file)) state.clear();
    ImageRecord record;
    record.source = reference_.source;
    record.config = std::move(meta->config);
    return unpacked(*slot, key_of(*manifest), std::move(record), state, manifest->size(),
                    [&] { return tools_.unpack_layers(*slot, store_.limits()); });
  }

  Result<ImageMeta> take_config(const Fd& incoming, const Manifest& manifest) {
    const auto& blob = manifest.config;
    const auto text =
        take_in_text(owner_, {&incoming, "image/" + blob.digest}, kMaxImageJson, stopped_);
    if (!text) return tl::unexpected(text.error());
    if (sha256_hex(*text) != blob.digest || static_cast<std::int64_t>(text->size()) != blob.size)
      return fail(ErrorCode::invalid_argument,
                  "its configuration is not what its manifest says: sha256:" + blob.digest);
    return parse_image_config(*text, manifest.layers.size());
  }

  Result<std::vector<LayerForm>> take_layers(const Fd& incoming, const Slot& slot,
                                             const Manifest& manifest, const ImageMeta& meta) {
    std::vector<LayerForm> out;
    std::int64_t left = store_.limits().image_bytes;
    for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
      const Blob& blob = manifest.layers[i];
      LayerForm form{blob, meta.diff_ids[i]};
      const LayerForm* earlier = nullptr;
      for (const LayerForm& other : out)
        if (other.blob.digest == blob.digest) earlier = &other;
      if (earlier != nullptr) {
        form.gzip = earlier->gzip;
      } else {
        ASSIGN(file, new_file(slot, "blobs/sha256/" + blob.digest));
        const auto taken =
            take_in(owner_, {&incoming, "image/" + blob.digest}, *file, left, stopped_);
        if (!taken) return tl::unexpected(taken.error());
        if (taken->digest != blob.digest || taken->bytes != blob.size)
          return fail(ErrorCode::invalid_argument,
                      "a layer is not what its manifest says: sha256:" + blob.digest);
        if (taken->head.starts_with("\x28\xb5\x2f\xfd"))
          return fail(ErrorCode::invalid_argument,
                      "a layer is compressed with zstd; gzip or none is supported");
        form.gzip = taken->head.starts_with("\x1f\x8b");
        left -= taken->bytes;
      }
      out.push_back(std::move(form));
    }
    return out;
  }

  // This user has provided every byte of the image. Unpacks it, unless another user has caused that
  // before.
  Result<ImageStore::Held> unpacked(const Slot& slot, const std::string& key, ImageRecord record,
                                    const std::string& state, std::int64_t bytes,
                                    const std::function<Result<void>()>& unpack) {
    ASSIGN(alone, store_.lock_key(key, stopped_));
    if (!store_.is_there(key)) {
      constexpr int kUsualCompression = 3;
      store_.make_room(bytes * kUsualCompression);
      TRY(unpack());
      TRY(store_.keep(slot, key, std::move(record)));
    }
    TRY(store_.prove(key, owner_.uid, state));
    alone->reset();
    auto held = store_.find(key, owner_.uid);
    if (!held) return fail(ErrorCode::runtime_failed, "removed from the cache just now");
    store_.make_room(0);
    return std::move(*held);
  }

  const Shim& shim_;
  const Owner& owner_;
  const ImageReference& reference_;
  std::string source_;  // the name for skopeo
  std::string file_;    // the part of `source_` that is a path
  ImageStore store_;
  ImageTools tools_;
  Stopped stopped_;
};

constexpr const char* kPassed =
    "passed";  // file beside the tree, which names the check that accepted the image
constexpr std::uint32_t kNobody = 65534;

// Changes with the program's file and with its arguments.
std::string mark_of(const std::vector<std::string>& command) {
  struct stat st {};
  std::string text;
  if (::stat(command.front().c_str(), &st) == 0)
    text = std::to_string(st.st_ino) + " " + std::to_string(st.st_size) + " " +
           std::to_string(st.st_mtim.tv_sec) + "." + std::to_string(st.st_mtim.tv_nsec);
  for (const std::string& word : command) text += '\0' + word;
  return sha256_hex(text);
}

}  // namespace

Result<void> fetch_image(const Shim& shim, ImageUse& image, Signals& signals) {
  ASSIGN(reference, parse_image(shim.request.container.image, shim.request.work_dir));
  image.kind = reference->kind;
  image.path = reference->source;
  if (image.kind == ImageKind::none) return {};
  if (image.kind == ImageKind::directory) return check_directory(shim, image.path);
  auto held = Fetch(shim, *reference, signals).run();
  if (!held) {
    const auto& why = held.error().message;
    const bool named = why.find(image.path) != std::string::npos ||
                       (!reference->file.empty() && why.starts_with(reference->file));
    return fail(held.error().code, "image " + (named ? why : image.path + ": " + why));
  }
  TRY(check_image(shim, image.path, held->tree, signals));
  image.path = held->tree;
  image.config = std::move(held->record.config);
  image.held = std::move(held->lock);
  return {};
}

Result<void> mount_image(const Shim& shim, ImageUse& image, Signals& signals) {
  if (image.kind == ImageKind::none) return {};
  if (image.kind == ImageKind::directory) return open_directory(shim, image, signals);
  image.root.reset(::open(image.path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!image.root) return fail_errno(ErrorCode::runtime_failed, "image " + image.path);
  return {};
}

Result<void> check_image(const Shim& shim, const std::string& name, const std::string& tree,
                         Signals& signals) {
  const std::vector<std::string>& command = shim.setup.image_check;
  if (command.empty()) return {};
  const std::string home = tree.substr(0, tree.rfind('/'));  // .../images/<key>
  const std::string key = home.substr(home.rfind('/') + 1);
  const std::string mark = mark_of(command);
  if (read_file(home + "/" + kPassed).value_or("") == mark) return {};
  ChildSpec spec;
  spec.argv = command;
  spec.argv.insert(spec.argv.end(), {name, key});
  // Only root can read the cache, so the program gets the image as its working directory.
  const Fd inside(::open(tree.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!inside) return fail_errno(ErrorCode::runtime_failed, tree);
  spec.more = {inside.get()};
  spec.cwd = "/proc/self/fd/3";
  spec.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "GANTRY_NODE=" + shim.setup.node,
              "GANTRY_JOB_USER=" + shim.request.owner.user, "GANTRY_TENANT=" + shim.request.tenant};
  if (!shim.setup.rootless) {
    spec.uid = spec.gid = kNobody;
    spec.namespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
    spec.read_only = true;
  }
  spec.goes_first = true;
  const auto end = run_to_end(std::move(spec), signals, shim.setup.hook_timeout);
  const auto failed = [&](const std::string& why) {
    return fail(ErrorCode::runtime_failed, "image_check " + command.front() + ": " + why);
  };
  if (!end) return failed(end.error().message);
  if (!end->stopped.empty()) return failed(end->stopped);
  if (!WIFEXITED(end->status)) return failed(status_text(end->status));
  if (WEXITSTATUS(end->status) != 0) {
    const std::string said = last_line(end->output);
    return fail(ErrorCode::permission_denied,
                "image " + name + " is refused here: " +
                    (said.empty() ? status_text(end->status) + " of " + command.front() : said));
  }
  const Fd dir(::open(home.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir) (void)write_whole(dir.get(), kPassed, mark, Durability::none);
  return {};
}

Result<void> check_directory(const Shim& shim, const std::string& path) {
  if (shim.setup.image_check.empty()) return {};
  return fail(
      ErrorCode::permission_denied,
      "image " + path +
          ": it is a directory, which can change after it was looked at, and this node looks "
          "at images before they are used (noded.image_check)");
}

}  // namespace gantry::runtime
