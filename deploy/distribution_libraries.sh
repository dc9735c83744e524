# Sourced by the scripts that pack programs.

# Prints the distribution's libraries that the file $1 needs, its C library left out: every Debian has that.
distribution_libraries() {
  ldd "$1" | awk '$2 == "=>" && $3 ~ /^(\/usr)?\/lib\// {print $3}' |
    grep -Ev '/(libc|libm|libdl|librt|libpthread|libutil|libresolv|libnss_[a-z]+)\.so\.[0-9]+$' || true
}
