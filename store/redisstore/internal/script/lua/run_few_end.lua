      numbers[2 * first + 2 * @ - 3], numbers[2 * first + 2 * @ - 2] = used@ + its_n@, its_w@
      easy = true
    end
  end
end
